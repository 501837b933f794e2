//! Test guest: decorates Namespaces, and returns whatever an annotation of theirs says. It decides nothing, so that a test alone determines
//! what the host is given.

use pilothouse_sdk::{Request, Response};
use scripted::Answer;
use serde_json::Value;

#[cfg(feature = "plugin")]
pilothouse_sdk::plugin! {
    name: "decorator",
    reconciles: "v1" "Namespace",
    children: ["v1" "ConfigMap", "networking.k8s.io/v1" "NetworkPolicy"],
    decorates: "decorated",
    reconcile: reconcile,
}

/// Returns what the annotation `decorator.test/answer` says.
pub fn reconcile(request: &Request<Value>) -> Response {
    answer_in(&request.object, "decorator.test/answer")
}

/// Returns what an annotation says; without it, there shall be no children and nothing on the object.
pub fn answer_in(object: &Value, annotation: &str) -> Response {
    let Some(text) = object["metadata"]["annotations"][annotation].as_str() else {
        return Response::done().no_children();
    };
    match serde_json::from_str::<Answer>(text) {
        Ok(answer) => answer.into(),
        Err(error) => Response::invalid(format!("the annotation {annotation} is no answer: {error}")),
    }
}
