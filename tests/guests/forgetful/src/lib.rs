//! Test guest: a version of the plugin `misbehaver` that answers "no children" whatever it is asked, as a plugin does whose
//! author made a mistake.

use pilothouse_sdk::{Object, Request, Response};

pilothouse_sdk::plugin! {
    name: "misbehaver",
    version: "9.0.0",
    reconciles: "test.pilothouse.dev/v1" "Misbehaver",
    children: ["v1" "ConfigMap", "v1" "Namespace"],
    reconcile: reconcile,
}

/// Forgets everything.
pub fn reconcile(_: &Request<Object<serde_json::Value>>) -> Response {
    Response::done().no_children()
}
