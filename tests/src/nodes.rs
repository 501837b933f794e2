//! What tests make the nodes of the cluster do: nodes with GPUs, and what a node says of its Pods.

use anyhow::Result;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::cluster::{Namespace, create_or_keep};

/// What nodes with GPUs are tainted with.
pub const GPU_TAINT: &str = "nvidia.com/gpu";

/// What keeps the Pods of other tests away from a node.
pub const RESERVED_TAINT: &str = "tests.example.com/reserved";

/// Makes a node with GPUs of this product. Any Pod that wants GPUs and names no product may come to it.
///
/// # Errors
/// If the API server refuses it.
pub async fn gpu_node(namespace: &Namespace, name: &str, product: &str) -> Result<()> {
    tainted_node(namespace, name, product, &[GPU_TAINT]).await
}

/// Makes a node with GPUs of this product, to which only Pods come that tolerate [`RESERVED_TAINT`]: for tests that fill it.
///
/// # Errors
/// If the API server refuses it.
pub async fn reserved_gpu_node(namespace: &Namespace, name: &str, product: &str) -> Result<()> {
    tainted_node(namespace, name, product, &[GPU_TAINT, RESERVED_TAINT]).await
}

async fn tainted_node(namespace: &Namespace, name: &str, product: &str, taints: &[&str]) -> Result<()> {
    let taints: Vec<_> = taints.iter().map(|key| json!({"key": key, "effect": "NoSchedule"})).collect();
    let resources = json!({"cpu": "64", "memory": "256Gi", "pods": "100", "nvidia.com/gpu": "16"});
    let node = json!({
        "apiVersion": "v1", "kind": "Node",
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "nvidia.com/gpu.product": product}},
        "spec": {"taints": taints},
        "status": {"allocatable": resources, "capacity": resources},
    });
    create_or_keep(&namespace.client(), node).await
}

/// Gives a Pod a status, as its node does.
///
/// # Errors
/// If there is no such Pod.
pub async fn set_pod_status(namespace: &Namespace, pod: &str, status: Value) -> Result<()> {
    let patch = Patch::Merge(json!({"status": status}));
    namespace.api("Pod")?.patch_status(pod, &PatchParams::default(), &patch).await?;
    Ok(())
}

/// Fails a Pod for a reason of its node, as kubelets do: they mark it as disrupted, end its processes, which here exit with 1 for it, and
/// leave it where it is.
///
/// # Errors
/// If there is no such Pod.
pub async fn end_by_kubelet(namespace: &Namespace, pod: &str, reason: &str, message: &str) -> Result<()> {
    let now = jiff::Timestamp::now().to_string();
    let found = namespace.get("Pod", pod).await?.unwrap_or_default();
    let containers = found["status"]["containerStatuses"].as_array().into_iter().flatten().map(|container| {
        let mut container = container.clone();
        let ended =
            json!({"exitCode": 1, "reason": "Error", "startedAt": found["status"]["startTime"], "finishedAt": now});
        (container["ready"], container["started"]) = (json!(false), json!(false));
        container["state"] = json!({"terminated": ended});
        container
    });
    let containers: Vec<_> = containers.collect();
    let disrupted = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet", "message": message,
        "lastTransitionTime": now,
    });
    let kept = found["status"]["conditions"].as_array().into_iter().flatten().cloned();
    let conditions: Vec<_> = kept.chain([disrupted]).collect();
    let status = json!({
        "phase": "Failed", "reason": reason, "message": message, "conditions": conditions, "containerStatuses": containers,
    });
    set_pod_status(namespace, pod, status).await
}
