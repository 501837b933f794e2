//! GPUs: the resource by which Pods ask for them, and the taint of nodes that have them. It chooses no node.

use serde_json::{Value, json};

/// The resource name of a GPU, if an object does not name one.
pub const DEFAULT_RESOURCE: &str = "nvidia.com/gpu";

/// A toleration of the taint that keeps other Pods off nodes with GPUs.
pub fn toleration(resource: &str) -> Value {
    json!({ "key": resource, "operator": "Exists", "effect": "NoSchedule" })
}
