//! The real operator of KEDA beside a control plane: its kinds and its controllers. Its adapter of metrics does not run: tests serve the
//! metrics API themselves.

use anyhow::Result;
use pilothouse_control_plane::free_ports;
use tokio::process::Command;

use crate::{
    cluster::{Cluster, install_crd},
    foreign_controller::ForeignController,
    third_party::{KEDA_CRDS, KEDA_OPERATOR, SCALED_OBJECT},
    tls,
};

/// The namespace of its own objects.
const NAMESPACE: &str = "default";

/// The running operator. Ends when it is dropped.
pub struct Keda {
    _controller: ForeignController,
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
        let mut command = Command::new(program);
        command.arg("--metrics-bind-address=0");
        command.arg(format!("--health-probe-bind-address=127.0.0.1:{}", ports[0]));
        command.arg(format!("--metrics-service-bind-address=127.0.0.1:{}", ports[1]));
        command.arg(format!("--cert-dir={}", folder.path().display()));
        command
            .env("WATCH_NAMESPACE", "")
            .env("POD_NAMESPACE", NAMESPACE)
            .env("KEDA_CLUSTER_OBJECT_NAMESPACE", NAMESPACE);
        Ok(Self { _controller: ForeignController::start(cluster, command, folder, ports[1]).await? })
    }
}
