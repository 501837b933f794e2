//! The real controller of LeaderWorkerSets beside a control plane, with its webhooks: it gives the Pods of a group their places, their
//! leader's address and their host names.

use std::{path::Path, process::Stdio};

use anyhow::Result;
use pilothouse_control_plane::free_port;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::{
    cluster::{Cluster, PATIENCE},
    third_party::{DISAGGREGATED_SET, LEADER_WORKER_SET, LWS_CONTROLLER, LWS_WEBHOOKS},
    tls,
    wait::{Look, eventually},
    webhooks::WebhookServer,
};

/// The running controller. Ends when it is dropped.
pub struct LwsController {
    _process: Child,
    _folder: TempDir,
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
        let log = std::fs::File::create(folder.path().join("log"))?;
        let mut command = Command::new(program);
        command.arg(format!("--config={}", config.display())).env("KUBECONFIG", cluster.plane.kubeconfig_path());
        let process = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).kill_on_drop(true).spawn()?;
        let answers = async || {
            let connected = tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok();
            let log = std::fs::read_to_string(folder.path().join("log"))?;
            Ok(Look::of(connected, log.lines().rev().take(5).collect::<Vec<_>>()))
        };
        eventually(PATIENCE, "the webhooks of the controller of LeaderWorkerSets", answers).await?;
        WebhookServer { port, certificate }.register(&cluster.plane.client().await?, &LWS_WEBHOOKS, "lws").await?;
        Ok(Self { _process: process, _folder: folder })
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
