//! The real controller of LeaderWorkerSets beside a control plane, with its webhooks: it gives the Pods of a group their places, their
//! leader's address and their host names.

use std::{path::Path, process::Stdio};

use anyhow::{Context, Result};
use base64::{Engine, engine::general_purpose::STANDARD};
use kube::{
    Client,
    api::{Patch, PatchParams},
};
use pilothouse_control_plane::free_port;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::{
    cluster::{Cluster, PATIENCE, api},
    third_party::{DISAGGREGATED_SET, LEADER_WORKER_SET, LWS_CONTROLLER, LWS_WEBHOOKS},
    tls,
    wait::{Look, eventually},
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
        install_webhooks(&cluster.plane.client().await?, port, &certificate).await?;
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

/// Installs the webhooks for LeaderWorkerSets and for Pods, with the address of this controller.
async fn install_webhooks(client: &Client, port: u16, certificate: &str) -> Result<()> {
    let text = std::fs::read_to_string(LWS_WEBHOOKS.fetch().await?)?;
    let configurations: Vec<Value> = serde_saphyr::from_multiple(&text)?;
    for mut configuration in configurations {
        for webhook in configuration["webhooks"].as_array_mut().into_iter().flatten() {
            let path = webhook["clientConfig"]["service"]["path"].as_str().context("a webhook without a path")?;
            let url = format!("https://127.0.0.1:{port}{path}");
            webhook["clientConfig"] = json!({"url": url, "caBundle": STANDARD.encode(certificate)});
        }
        let kind = configuration["kind"].as_str().context("no kind")?.to_owned();
        configuration["metadata"]["name"] = json!("lws");
        let parameters = PatchParams::apply("tests").force();
        api(client, &kind, None)?.patch("lws", &parameters, &Patch::Apply(configuration)).await?;
    }
    Ok(())
}
