//! Pods with the annotation `pod-name-label` get their name as the value of the label that it names.

use pilothouse_sdk::{Request, Response};
use serde_json::{Value, json};

pilothouse_sdk::plugin! {
    name: "pod-name-label",
    reconciles: "v1" "Pod",
    children: [],
    decorates: "" annotations "pod-name-label",
    reads: ["/metadata/annotations"],
    reconcile: reconcile,
}

/// Asks for the label.
pub fn reconcile(request: &Request<Value>) -> Response {
    let metadata = &request.object["metadata"];
    let label = metadata["annotations"]["pod-name-label"].as_str().unwrap_or_default();
    Response::done().on_object(json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": { "name": metadata["name"], "labels": { label: metadata["name"] } },
    }))
}
