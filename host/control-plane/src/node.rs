//! The one node of a full control plane: a simulated GPU machine. kwok makes it ready; nothing really runs on it.

use anyhow::Result;
use k8s_openapi::api::core::v1::{Node, ServiceAccount};
use kube::api::{Api, PostParams};
use kube::{Client, Error};
use serde_json::json;

/// The node's name.
pub const NODE_NAME: &str = "node-0";

/// Makes the node, unless it is there.
pub(crate) async fn create(client: &Client) -> Result<()> {
    match Api::<Node>::all(client.clone()).create(&PostParams::default(), &node()?).await {
        Ok(_) => Ok(()),
        Err(Error::Api(status)) if status.is_already_exists() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether kwok has made the node ready.
pub(crate) async fn is_ready(client: &Client) -> bool {
    let node = Api::<Node>::all(client.clone()).get(NODE_NAME).await;
    let conditions = node.ok().and_then(|node| node.status?.conditions).unwrap_or_default();
    conditions.iter().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// Whether the controller manager has given the default namespace its service account, without which no Pod can be
/// created there.
pub(crate) async fn has_default_account(client: &Client) -> bool {
    Api::<ServiceAccount>::namespaced(client.clone(), "default").get("default").await.is_ok()
}

fn node() -> Result<Node> {
    let resources = json!({
        "cpu": "64", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "5000", "nvidia.com/gpu": "48",
    });
    let node = json!({
        "metadata": {
            "name": NODE_NAME,
            "labels": {
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": NODE_NAME,
                "kubernetes.io/os": "linux",
                "node-role.kubernetes.io/gpu": "",
                "topology.kubernetes.io/region": "local",
                "topology.kubernetes.io/zone": "local-a",
                "nvidia.com/cuda.driver.major": "570",
                "nvidia.com/gpu.compute.major": "9",
                "nvidia.com/gpu.compute.minor": "0",
                "nvidia.com/gpu.count": "48",
                "nvidia.com/gpu.family": "hopper",
                "nvidia.com/gpu.memory": "81559",
                "nvidia.com/gpu.present": "true",
                "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
                "nvidia.com/gpu.replicas": "1",
                "nvidia.com/mig.capable": "true",
            },
        },
        "spec": {"podCIDR": "10.244.0.0/16"},
        "status": {"allocatable": resources, "capacity": resources},
    });
    Ok(serde_json::from_value(node)?)
}
