//! Test guest: a plugin whose name and kind tests replace in the `.wasm`, digit by digit, so that there are many of it.

use pilothouse_sdk::{Object, Request, Response};
use serde_json::{Value, json};

pilothouse_sdk::plugin! {
    name: "copy-000",
    reconciles: "copies.pilothouse.dev/v1" "Copy000",
    children: ["v1" "ConfigMap"],
    reconcile: reconcile,
}

/// One ConfigMap with the object's spec in it.
pub fn reconcile(request: &Request<Object<Value>>) -> Response {
    Response::done().child(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": request.object.name() },
        "data": { "spec": request.object.spec.to_string() },
    }))
}
