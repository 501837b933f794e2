//! The real operator of KEDA beside a control plane: its kinds and its controllers. Its adapter of metrics does not run: tests serve the
//! metrics API themselves.

use std::process::Stdio;

use anyhow::Result;
use pilothouse_control_plane::free_ports;
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::{
    cluster::{Cluster, PATIENCE, install_crd},
    third_party::{KEDA_CRDS, KEDA_OPERATOR, SCALED_OBJECT},
    tls,
    wait::{Look, eventually},
};

/// The namespace of its own objects.
const NAMESPACE: &str = "default";

/// The running operator. Ends when it is dropped.
pub struct Keda {
    _process: Child,
    folder: TempDir,
}

impl Keda {
    /// Installs the kinds in a control plane that has none of them, and starts the operator.
    ///
    /// # Errors
    /// If there is no Go to build it with, or it does not start.
    pub async fn start(cluster: &Cluster) -> Result<Self> {
        let program = KEDA_OPERATOR.build().await?;
        let client = cluster.plane.client().await?;
        for crd in KEDA_CRDS {
            install_crd(&client, &crd.fetch().await?).await?;
        }
        cluster.install_foreign_crd(&SCALED_OBJECT.fetch().await?).await?;
        let (folder, ports) = (tempfile::tempdir()?, free_ports(2)?);
        let authority = tls::self_signed(folder.path())?;
        std::fs::write(folder.path().join("ca.crt"), authority)?;
        let log = std::fs::File::create(folder.path().join("log"))?;
        let mut command = Command::new(program);
        command.arg("--metrics-bind-address=0");
        command.arg(format!("--health-probe-bind-address=127.0.0.1:{}", ports[0]));
        command.arg(format!("--metrics-service-bind-address=127.0.0.1:{}", ports[1]));
        command.arg(format!("--cert-dir={}", folder.path().display()));
        command.env("KUBECONFIG", cluster.plane.kubeconfig_path()).env("WATCH_NAMESPACE", "");
        command.env("POD_NAMESPACE", NAMESPACE).env("KEDA_CLUSTER_OBJECT_NAMESPACE", NAMESPACE);
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).kill_on_drop(true).spawn()?;
        let keda = Self { _process: process, folder };
        let answers = async || {
            let connected = tokio::net::TcpStream::connect(("127.0.0.1", ports[1])).await.is_ok();
            Ok(Look::of(connected, keda.last_words()?))
        };
        eventually(PATIENCE, "KEDA's operator", answers).await?;
        Ok(keda)
    }

    /// The last lines of its log.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn last_words(&self) -> Result<Vec<String>> {
        let log = std::fs::read_to_string(self.folder.path().join("log"))?;
        Ok(log.lines().rev().take(5).map(str::to_owned).collect())
    }
}
