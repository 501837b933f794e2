//! Test guest: a plugin whose kinds benchmarks replace in the `.wasm`, digit by digit, so that the child of each is the object of the next.

use pilothouse_sdk::{Object, Request, Response};
use serde_json::{Value, json};

pilothouse_sdk::plugin! {
    name: "link-000",
    reconciles: "links.pilothouse.dev/v1" "Link000",
    children: ["links.pilothouse.dev/v1" "Next000"],
    // What an object is told of its child does not depend on the child's own: otherwise each change would come all the way back.
    child_readiness: ["links.pilothouse.dev/v1" "Next000" current "true"],
    reconcile: reconcile,
}

/// One object of the next kind with the same spec.
pub fn reconcile(request: &Request<Object<Value>>) -> Response {
    Response::done().child(json!({
        "apiVersion": "links.pilothouse.dev/v1",
        "kind": "Next000",
        "metadata": { "name": request.object.name() },
        "spec": request.object.spec,
    }))
}
