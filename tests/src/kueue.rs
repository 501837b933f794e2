//! The real Kueue beside a control plane: its kinds, its controllers and all its webhooks. It watches no other jobs than those of `batch/v1`.

use std::path::Path;

use anyhow::{Context, Result};
use kube::api::{Patch, PatchParams};
use pilothouse_control_plane::free_ports;
use serde_json::{Value, json};
use tokio::process::Command;

use crate::{
    cluster::{Cluster, api, install_crd},
    foreign_controller::ForeignController,
    third_party::{KUEUE, KUEUE_CRDS, KUEUE_WEBHOOKS},
    tls,
    webhooks::WebhookServer,
};

/// The running controllers. They end when it is dropped.
pub struct Kueue {
    _controller: ForeignController,
}

impl Kueue {
    /// Installs the kinds in a control plane that has none of them, and starts the controllers.
    ///
    /// # Errors
    /// If there is no Go to build it with, or it does not start.
    pub async fn start(cluster: &Cluster) -> Result<Self> {
        let client = cluster.plane.client().await?;
        for crd in KUEUE_CRDS {
            install_crd(&client, &crd.fetch().await?).await?;
        }
        let program = KUEUE.build().await?;
        let folder = tempfile::tempdir()?;
        let ports = free_ports(2)?;
        let certificate = tls::self_signed(folder.path())?;
        let config = folder.path().join("config.yaml");
        std::fs::write(&config, configuration(folder.path(), ports[0], ports[1]).to_string())?;
        let mut command = Command::new(program);
        command.arg(format!("--config={}", config.display())).arg("--feature-gates=VisibilityOnDemand=false");
        let controller = ForeignController::start(cluster, command, folder, ports[0]).await?;
        WebhookServer { port: ports[0], certificate }.register(&client, &KUEUE_WEBHOOKS, "kueue").await?;
        Ok(Self { _controller: controller })
    }
}

fn configuration(folder: &Path, port: u16, health: u16) -> Value {
    json!({
        "apiVersion": "config.kueue.x-k8s.io/v1beta1", "kind": "Configuration",
        "webhook": {"host": "127.0.0.1", "port": port, "certDir": folder},
        "internalCertManagement": {"enable": false},
        "leaderElection": {"leaderElect": false},
        "metrics": {"bindAddress": "0"},
        "health": {"healthProbeBindAddress": format!("127.0.0.1:{health}")},
        "integrations": {"frameworks": ["batch/job"]},
    })
}

/// Makes a queue of this name in a namespace, with so many CPUs on the nodes of a flavor with this label. Whoever has a higher priority
/// takes the place of others in it.
///
/// # Errors
/// If the API server refuses an object.
pub async fn queue(cluster: &Cluster, namespace: &str, name: &str, cpus: u32) -> Result<()> {
    let client = cluster.plane.client().await?;
    let of = |kind: &str, name: &str, spec: Value| json!({"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    let resources = json!([{"name": "cpu", "nominalQuota": cpus}]);
    let groups = json!([{"coveredResources": ["cpu"], "flavors": [{"name": name, "resources": resources}]}]);
    let preemption = json!({"withinClusterQueue": "LowerPriority"});
    let cluster_queue = json!({"namespaceSelector": {}, "resourceGroups": groups, "preemption": preemption});
    let labels = json!({"nodeLabels": {"kubernetes.io/os": "linux"}});
    let mut class = of("WorkloadPriorityClass", "urgent", Value::Null);
    class.as_object_mut().context("no object")?.remove("spec");
    class["value"] = json!(1000);
    let objects = [
        (None, of("ResourceFlavor", name, labels)),
        (None, of("ClusterQueue", name, cluster_queue)),
        (None, class),
        (Some(namespace), of("LocalQueue", name, json!({"clusterQueue": name}))),
    ];
    for (namespace, object) in objects {
        let (kind, name) = (object["kind"].as_str().unwrap_or_default(), object["metadata"]["name"].as_str());
        let patch = Patch::Apply(&object);
        api(&client, kind, namespace)?.patch(name.unwrap_or_default(), &PatchParams::apply("tests"), &patch).await?;
    }
    Ok(())
}
