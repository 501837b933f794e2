//! Test guest: as `decorator`, a second plugin for the same kind, with an annotation of its own.

use pilothouse_sdk::{Request, Response};
use serde_json::Value;

pilothouse_sdk::plugin! {
    name: "decorator-second",
    reconciles: "v1" "Namespace",
    children: ["v1" "ConfigMap"],
    decorates: "decorated",
    reconcile: reconcile,
}

/// Returns what the annotation `second.test/answer` says.
pub fn reconcile(request: &Request<Value>) -> Response {
    decorator::answer_in(&request.object, "second.test/answer")
}
