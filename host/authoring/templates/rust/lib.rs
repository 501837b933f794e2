//! A `{{kind}}` becomes a Deployment that runs its image.

use pilothouse_sdk::{Condition, Error, Object, Request, Response, json, k8s_openapi::api::apps::v1::Deployment};
use serde::Deserialize;

// The manifest of the plugin: what it is called, and what it may touch.
pilothouse_sdk::plugin! {
    name: "{{name}}",
    reconciles: "{{apiVersion}}" "{{kind}}",
    children: ["apps/v1" "Deployment"],
    reconcile: reconcile,
}

/// What the user asks for, as in crd.yaml.
#[derive(Deserialize)]
pub struct Spec {
    /// The image that runs.
    #[serde(default)]
    image: String,
    /// How many Pods run it.
    #[serde(default = "one")]
    replicas: i32,
}

fn one() -> i32 {
    1
}

/// Says what shall exist for a `{{kind}}`, and how it is.
///
/// # Errors
/// The live Deployment cannot be read.
pub fn reconcile(request: &Request<Object<Spec>>) -> Result<Response, Error> {
    let name = request.object.name();
    let Spec { image, replicas } = &request.object.spec;
    if image.is_empty() {
        return Ok(Response::invalid("spec.image is empty: say which image runs"));
    }
    let live = request.child::<Deployment>(name)?;
    let ready = live.and_then(|deployment| deployment.status?.ready_replicas).unwrap_or_default();
    let is_available = ready >= *replicas;
    let reason = if is_available { "AllReady" } else { "Starting" };
    Ok(Response::done()
        .child(json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": { "name": name, "labels": { "app": name } },
            "spec": {
                "replicas": replicas,
                "selector": { "matchLabels": { "app": name } },
                "template": {
                    "metadata": { "labels": { "app": name } },
                    "spec": { "containers": [{ "name": "app", "image": image }] },
                },
            },
        }))
        .status(json!({ "readyReplicas": ready }))
        .condition(Condition::when("Available", is_available, reason, format!("{ready} of {replicas} Pods are ready"))))
}
