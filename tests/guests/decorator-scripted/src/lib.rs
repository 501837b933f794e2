//! Test guest: as `decorator`, for a kind that the guest `scripted` owns.

use pilothouse_sdk::{Request, Response};
use serde_json::Value;

pilothouse_sdk::plugin! {
    name: "decorator-scripted",
    reconciles: "test.pilothouse.dev/v1" "Scripted",
    children: ["v1" "ConfigMap"],
    decorates: "",
    reconcile: reconcile,
}

/// Returns what the annotation `decorator.test/answer` says.
pub fn reconcile(request: &Request<Value>) -> Response {
    decorator::answer_in(&request.object, "decorator.test/answer")
}
