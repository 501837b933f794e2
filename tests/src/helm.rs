//! The real Helm, built from its module. It keeps nothing in the user's home, and reaches no cluster but the one it is given.

use std::{
    ffi::{OsStr, OsString},
    path::{Path, PathBuf},
    process::Stdio,
};

use anyhow::{Context, Result, ensure};
use pilothouse_control_plane::KUBERNETES;
use serde_json::Value;
use tempfile::TempDir;
use tokio::process::Command;

use crate::{artifacts, third_party::HELM};

/// A program and its folder for caches.
pub struct Helm {
    program: PathBuf,
    home: TempDir,
}

/// A chart of the repository under the name and in the namespace of a release.
#[derive(Clone, Copy, Debug)]
pub struct Release<'a> {
    /// The chart's folder in `deploy/helm-charts`.
    pub chart: &'a str,
    /// The name of the release.
    pub name: &'a str,
    /// Its namespace.
    pub namespace: &'a str,
    /// More arguments, such as `--set` and what to set.
    pub values: &'a [&'a str],
}

impl Release<'_> {
    fn arguments(&self, verb: &str) -> Result<Vec<OsString>> {
        let mut arguments = vec![verb.into(), self.name.into(), chart(self.chart)?.into()];
        arguments.extend(["--namespace".into(), self.namespace.into()]);
        arguments.extend(self.values.iter().map(Into::into));
        Ok(arguments)
    }
}

/// The folder of a chart of the repository.
///
/// # Errors
/// If there is no such chart.
pub fn chart(name: &str) -> Result<PathBuf> {
    let folder = artifacts::repository().join("deploy/helm-charts").join(name);
    ensure!(folder.join("Chart.yaml").is_file(), "there is no chart in '{}'", folder.display());
    Ok(folder)
}

impl Helm {
    /// Builds Helm, unless it is built already. The first time takes a minute or two.
    ///
    /// # Errors
    /// If there is no Go to build it with, or it does not build.
    pub async fn get() -> Result<Self> {
        let program = HELM.build().await.context("failed to get Helm, which renders and checks the charts")?;
        Ok(Self { program, home: tempfile::tempdir()? })
    }

    /// Checks a chart, as the Kubernetes of the tests would have it.
    ///
    /// # Errors
    /// If Helm finds something to object to. Quotes it.
    pub async fn lint(&self, name: &str, values: &[&str]) -> Result<()> {
        let mut arguments: Vec<OsString> = vec!["lint".into(), "--strict".into(), chart(name)?.into()];
        arguments.extend(["--kube-version".into(), KUBERNETES.into()]);
        arguments.extend(values.iter().map(Into::into));
        self.run(arguments).await.map(drop)
    }

    /// The text that a chart renders to, without its CRDs. For the Kubernetes of the tests, unless the values say another version.
    ///
    /// # Errors
    /// If Helm refuses it. Quotes its words.
    pub async fn text(&self, release: Release<'_>) -> Result<String> {
        let mut arguments = release.arguments("template")?;
        if !release.values.contains(&"--kube-version") {
            arguments.extend(["--kube-version".into(), KUBERNETES.into()]);
        }
        self.run(arguments).await
    }

    /// The objects that a chart renders to, without its CRDs.
    ///
    /// # Errors
    /// If Helm refuses it, or renders what is not YAML.
    pub async fn objects(&self, release: Release<'_>) -> Result<Vec<Value>> {
        let objects: Vec<Value> = serde_saphyr::from_multiple(&self.text(release).await?)?;
        Ok(objects.into_iter().filter(|object| !object.is_null()).collect())
    }

    /// Installs a chart with its CRDs, and waits for nothing.
    ///
    /// # Errors
    /// If Helm or the API server refuses it. Quotes the words.
    pub async fn install(&self, release: Release<'_>, kubeconfig: &Path) -> Result<()> {
        self.in_cluster(release, "install", kubeconfig).await
    }

    /// Changes an installed chart to these values.
    ///
    /// # Errors
    /// If Helm or the API server refuses it. Quotes the words.
    pub async fn upgrade(&self, release: Release<'_>, kubeconfig: &Path) -> Result<()> {
        self.in_cluster(release, "upgrade", kubeconfig).await
    }

    /// Takes a release out of its namespace.
    ///
    /// # Errors
    /// If there is none, or the API server refuses it. Quotes the words.
    pub async fn uninstall(&self, release: Release<'_>, kubeconfig: &Path) -> Result<()> {
        let mut arguments: Vec<OsString> = vec!["uninstall".into(), release.name.into()];
        arguments.extend(["--namespace".into(), release.namespace.into(), "--kubeconfig".into(), kubeconfig.into()]);
        self.run(arguments).await.map(drop)
    }

    async fn in_cluster(&self, release: Release<'_>, verb: &str, kubeconfig: &Path) -> Result<()> {
        let mut arguments = release.arguments(verb)?;
        arguments.extend(["--kubeconfig".into(), kubeconfig.into()]);
        self.run(arguments).await.map(drop)
    }

    async fn run(&self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Result<String> {
        let mut command = Command::new(&self.program);
        command.args(arguments).env_remove("KUBECONFIG").stdin(Stdio::null()).kill_on_drop(true);
        for folder in ["HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
            command.env(folder, self.home.path());
        }
        let output = command.output().await.context("failed to run Helm")?;
        let said = String::from_utf8_lossy(&output.stderr);
        // A lint says on standard output what it found.
        let found = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "Helm refuses it: {said}{found}");
        Ok(found.into_owned())
    }
}
