//! A `{{kind}}` becomes a ConfigMap that shows its spec. Its types are in `spec.rs`.

pub mod spec;

use std::collections::BTreeMap;

use pilothouse_sdk::{Error, Object, Request, Response};
use serde_json::json;

use crate::spec::Spec;

// The manifest of the plugin: what it is called, and what it may touch.
pilothouse_sdk::plugin! {
    name: "{{name}}",
    reconciles: "{{apiVersion}}" "{{kind}}",
    children: ["v1" "ConfigMap"],
    reconcile: reconcile,
}

/// Says what shall exist for a `{{kind}}`, and how it is.
///
/// # Errors
/// None so far.
pub fn reconcile(request: &Request<Object<Spec>>) -> Result<Response, Error> {
    let name = request.object.name();
    Ok(Response::done().child(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": { "name": name{{namespace}} },
        "data": data(&request.object.spec),
    })))
}

/// What the ConfigMap says of a spec: values, and of what is longer how many entries it has, or that it is set.
fn data(spec: &Spec) -> BTreeMap<String, String> {
    let mut data = BTreeMap::new();
{{shown}}    data
}
