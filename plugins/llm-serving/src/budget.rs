//! The PodDisruptionBudget of a server: how many of its Pods may be missing while nodes are drained.

use crate::labels;
use crate::server::Server;
use serde_json::{Value, json};

/// The PodDisruptionBudget of a server that has Pods.
pub fn disruption_budget(server: &Server<'_>) -> Option<Value> {
    let mut spec = server.rollout.budget.clone().filter(|_| server.desired_replicas() > 0)?;
    spec["selector"] = json!({ "matchLabels": labels::selector(&server.spec.identity) });
    Some(json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": { "name": server.workload(), "labels": labels::of(server) },
        "spec": spec,
    }))
}
