//! A Kubernetes control plane on this machine that lives as long as the command, without containers. Knows nothing of plugins.

use anyhow::Context;
use kube::{
    Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use pilothouse_control_plane::{Assets, ControlPlane, Options, Parts};
use tempfile::TempDir;

use super::view::View;

/// A running control plane. It ends when it is dropped, and takes its objects along.
pub(super) struct LocalCluster {
    plane: ControlPlane,
    /// Of its files.
    _folder: TempDir,
}

impl LocalCluster {
    /// Starts one, after it got the programs if they are not there: that takes minutes the first time.
    ///
    /// # Errors
    /// If the programs cannot be had, or do not start.
    pub(super) async fn start(view: &View) -> anyhow::Result<Self> {
        let report = {
            let view = view.clone();
            move |line: &str| view.tell("local cluster", line)
        };
        let assets = Assets::ensure(report.clone()).await.context("there are no programs for a local cluster")?;
        let folder = tempfile::tempdir().context("there is no place for a local cluster")?;
        report("starting");
        let options = Options::new(folder.path(), Parts::Full).report(report.clone());
        let plane = ControlPlane::start(assets, options).await.context("failed to start a local cluster")?;
        report("for kubectl in another terminal:");
        view.print(&format!("export KUBECONFIG={}", plane.kubeconfig_path().display()));
        Ok(Self { plane, _folder: folder })
    }

    /// How to reach it.
    ///
    /// # Errors
    /// If its kubeconfig cannot be read.
    pub(super) async fn config(&self) -> anyhow::Result<Config> {
        let kubeconfig = Kubeconfig::read_from(self.plane.kubeconfig_path())?;
        Ok(Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?)
    }

    /// Ends it in good order.
    ///
    /// # Errors
    /// If a part of it cannot be ended.
    pub(super) async fn stop(self) -> anyhow::Result<()> {
        self.plane.stop().await
    }
}
