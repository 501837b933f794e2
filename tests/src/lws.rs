//! The real controller of LeaderWorkerSets beside a control plane, with its webhooks: it gives the Pods of a group their places, their
//! leader's address and their host names.

use std::path::Path;

use anyhow::Result;
use pilothouse_control_plane::free_port;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::{
    cluster::Cluster,
    foreign_controller::ForeignController,
    third_party::{DISAGGREGATED_SET, LEADER_WORKER_SET, LWS_CONTROLLER, LWS_WEBHOOKS},
    tls,
    webhooks::WebhookServer,
};

/// The running controller. Ends when it is dropped.
pub struct LwsController {
    _controller: ForeignController,
}

impl LwsController {
    /// Installs the kinds in a control plane that has none of them, and starts the controller.
    ///
    /// # Errors
    /// If there is no Go to build it with, or it does not start.
    pub async fn start(cluster: &Cluster) -> Result<Self> {
        for crd in [DISAGGREGATED_SET, LEADER_WORKER_SET] {
            cluster.install_foreign_crd(&crd.fetch().await?).await?;
        }
        let program = LWS_CONTROLLER.build().await?;
        let (folder, port, health) = (tempfile::tempdir()?, free_port()?, free_port()?);
        let certificate = tls::self_signed(folder.path())?;
        let config = folder.path().join("config.yaml");
        std::fs::write(&config, configuration(folder.path(), port, health).to_string())?;
        let mut command = Command::new(program);
        command.arg(format!("--config={}", config.display()));
        let controller = ForeignController::start(cluster, command, folder, port).await?;
        WebhookServer { port, certificate }.register(&cluster.plane.client().await?, &LWS_WEBHOOKS, "lws").await?;
        Ok(Self { _controller: controller })
    }
}

fn configuration(folder: &Path, port: u16, health: u16) -> Value {
    json!({
        "apiVersion": "config.lws.x-k8s.io/v1alpha1", "kind": "Configuration",
        "webhook": {"host": "127.0.0.1", "port": port, "certDir": folder},
        "internalCertManagement": {"enable": false},
        "leaderElection": {"leaderElect": false},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": format!("127.0.0.1:{health}")},
    })
}
