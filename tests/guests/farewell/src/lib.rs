//! Test guest: a plugin with a finalizer. It holds its object back until `spec.letGo` is true, fails meanwhile if it is asked
//! to, and does nothing else worth seeing.

#![allow(clippy::panic, reason = "a trap is what the test asks for")]

use pilothouse_sdk::{Object, Request, Response, log};
use serde::Deserialize;
use serde_json::json;

pilothouse_sdk::plugin! {
    name: "farewell",
    reconciles: "test.pilothouse.dev/v1" "Farewell",
    children: ["v1" "ConfigMap"],
    reconcile: reconcile,
    finalize: finalize,
}

/// What the object says.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct FarewellSpec {
    /// Whether the finalizer may be done.
    pub let_go: bool,
    /// Whether the finalizer traps until then.
    pub fail: bool,
}

/// Asks for one ConfigMap.
pub fn reconcile(request: &Request<Object<FarewellSpec>>) -> Response {
    Response::done().child(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": request.object.name() },
    }))
}

/// Waits until it may let go.
pub fn finalize(request: &Request<Object<FarewellSpec>>) -> Response {
    assert!(!request.object.spec.fail || request.object.spec.let_go, "it was asked to");
    if !request.object.spec.let_go {
        return Response::wait("HeldBack", "spec.letGo is not true", 300);
    }
    log::info("farewell");
    Response::done()
}
