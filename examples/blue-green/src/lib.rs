//! A `BlueGreenDeployment` becomes two ReplicaSets, blue and green, and a Service for one of them. A changed template comes to the other one, and the
//! Service changes over once that has all its Pods.

use pilothouse_sdk::{
    Condition, Error, Object, Request, Response,
    k8s_openapi::api::{
        apps::v1::{ReplicaSet, ReplicaSetStatus},
        core::v1::Service,
    },
};
use serde::Deserialize;
use serde_json::{Value, json};

pilothouse_sdk::plugin! {
    name: "blue-green",
    reconciles: "ctl.enisoc.com/v1" "BlueGreenDeployment",
    children: ["v1" "Service", "apps/v1" "ReplicaSet"],
    reconcile: reconcile,
}

/// The annotation with the template that a ReplicaSet was made of: the API server adds defaults to what is in its spec.
const TEMPLATE: &str = "blue-green.example.com/template";

/// What the user asks for.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    replicas: i32,
    #[serde(default)]
    min_ready_seconds: i32,
    selector: Value,
    template: Value,
    service: Value,
}

/// One colour: how it is, and how it shall be.
struct Side {
    color: &'static str,
    status: ReplicaSetStatus,
    replicas: i32,
    template: Value,
}

impl Side {
    /// Where there is none yet, it has so many replicas of the present template.
    fn of(request: &Request<Object<Spec>>, color: &'static str, replicas: i32) -> Result<Self, Error> {
        let template = &request.object.spec.template;
        let live = request.child::<ReplicaSet>(&format!("{}-{color}", request.object.name()))?.unwrap_or_default();
        let replicas = live.spec.and_then(|spec| spec.replicas).unwrap_or(replicas);
        let written = live.metadata.annotations.and_then(|mut all| all.remove(TEMPLATE));
        let template = written.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_else(|| template.clone());
        Ok(Self { color, status: live.status.unwrap_or_default(), replicas, template })
    }

    fn is_available(&self, replicas: i32) -> bool {
        self.status.available_replicas.unwrap_or_default() == replicas
    }
}

/// Takes the next step of a rollout.
///
/// # Errors
/// A child cannot be read.
pub fn reconcile(request: &Request<Object<Spec>>) -> Result<Response, Error> {
    let spec = &request.object.spec;
    let service = request.child::<Service>(spec.service["metadata"]["name"].as_str().unwrap_or_default())?;
    let selected = service.and_then(|service| service.spec?.selector?.remove("color"));
    let (on, off) = if selected.as_deref() == Some("green") { ("green", "blue") } else { ("blue", "green") };
    let (mut on, mut off) = (Side::of(request, on, spec.replicas)?, Side::of(request, off, 0)?);
    if on.template == spec.template {
        (on.replicas, off.replicas) = (spec.replicas, 0);
    } else if off.template == spec.template {
        off.replicas = spec.replicas;
        if off.is_available(spec.replicas) {
            (on, off) = (off, on);
        }
    } else if off.replicas == 0 && off.status.replicas == 0 {
        (off.replicas, off.template) = (spec.replicas, spec.template.clone());
    } else {
        // Another rollout is under way: its Pods go first.
        off.replicas = 0;
    }
    let is_done = on.template == spec.template && on.is_available(spec.replicas);
    let mut service = spec.service.clone();
    service["apiVersion"] = json!("v1");
    service["kind"] = json!("Service");
    service["spec"]["selector"]["color"] = json!(on.color);
    Ok(Response::done()
        .child(service)
        .child(replica_set(request, &on))
        .child(replica_set(request, &off))
        .status(json!({ "activeColor": on.color, "active": on.status, "inactive": off.status }))
        .condition(Condition::when("Ready", is_done, if is_done { "Active" } else { "RollingOut" }, "")))
}

fn replica_set(request: &Request<Object<Spec>>, side: &Side) -> Value {
    let (spec, color) = (&request.object.spec, side.color);
    let mut template = side.template.clone();
    template["metadata"]["labels"]["color"] = json!(color);
    let mut selector = spec.selector.clone();
    selector["matchLabels"]["color"] = json!(color);
    json!({
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {
            "name": format!("{}-{color}", request.object.name()),
            "labels": template["metadata"]["labels"],
            "annotations": { TEMPLATE: side.template.to_string() },
        },
        "spec": {
            "replicas": side.replicas,
            "minReadySeconds": spec.min_ready_seconds,
            "selector": selector,
            "template": template,
        },
    })
}
