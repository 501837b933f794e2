//! Test guest: a plugin with a finalizer. It holds its object and its child until `spec.letGo` is true, fails meanwhile if it is
//! asked to, then removes the child, and is done when that is gone.

#![allow(clippy::panic, reason = "a trap is what the test asks for")]

use pilothouse_sdk::{Error, Kind, Object, Request, Response, log};
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

/// The child.
#[derive(Debug, Deserialize)]
pub struct ConfigMap {}

impl Kind for ConfigMap {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "ConfigMap";
}

/// Asks for one ConfigMap.
pub fn reconcile(request: &Request<Object<FarewellSpec>>) -> Response {
    Response::done().child(child(request))
}

/// Keeps the child until it may let go, and then removes it.
///
/// # Errors
/// A child cannot be read.
pub fn finalize(request: &Request<Object<FarewellSpec>>) -> Result<Response, Error> {
    let spec = &request.object.spec;
    if !spec.let_go {
        assert!(!spec.fail, "it was asked to");
        return Ok(Response::wait("HeldBack", "spec.letGo is not true", 300).child(child(request)));
    }
    if !request.children::<ConfigMap>()?.is_empty() {
        return Ok(Response::wait("TearingDown", "the child is not gone", 300).no_children());
    }
    log::info("farewell");
    Ok(Response::done())
}

fn child(request: &Request<Object<FarewellSpec>>) -> serde_json::Value {
    json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": request.object.name() },
    })
}
