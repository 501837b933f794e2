//! Checks the plugin without a cluster. The tables hold what the training operator's own tests of `PyTorchJob` hold, as facts.

mod answers;
mod lifecycle;

use pilothouse_sdk::testing::Answer;
use serde_json::{Value, json};

/// The time, unless a test says another one.
pub const NOW: &str = "2026-01-01T00:00:00Z";

/// A job of which each replica runs this container.
pub fn job(spec: Value) -> Value {
    json!({
        "apiVersion": "kubeflow.org/v1",
        "kind": "PyTorchJob",
        "metadata": { "name": "mnist", "namespace": "ml", "uid": "u" },
        "spec": spec,
    })
}

/// So many replicas that train.
pub fn replicas(count: u32) -> Value {
    json!({ "replicas": count, "template": { "spec": { "containers": [{ "name": "pytorch", "image": "i" }] } } })
}

/// The spec of a job with a master and so many workers.
pub fn master_and_workers(workers: u32) -> Value {
    json!({ "pytorchReplicaSpecs": { "Master": replicas(1), "Worker": replicas(workers) } })
}

/// A spec with these fields in it.
pub fn with(mut spec: Value, fields: Value) -> Value {
    if let (Some(spec), Value::Object(fields)) = (spec.as_object_mut(), fields) {
        spec.extend(fields);
    }
    spec
}

/// The children that an answer returns.
pub fn children(answer: &Answer) -> Vec<Value> {
    let texts = answer.response.children.iter().flatten();
    texts.filter_map(|child| serde_json::from_str(&child.object).ok()).collect()
}
