//! A `Website` becomes a Deployment, with a volume where it wants one. It uses each part of the SDK once.

use pilothouse_sdk::{
    Condition, ConditionStatus, Error, Event, Handling, ImmutablePolicy, Measurement, Object, Options, RemovalPolicy,
    Request, Response, clock, json,
    k8s_openapi::api::{apps::v1::Deployment, core::v1::ConfigMap},
    lookup,
};
use serde::{Deserialize, Serialize};

pilothouse_sdk::plugin! {
    name: "web-site",
    reconciles: "example.com/v1" "Website",
    children: ["apps/v1" "Deployment", "v1" "PersistentVolumeClaim"],
    lookups: ["v1" "ConfigMap"],
    measurements: [gauge "pods_ready" "Pods that are ready." ["phase"]],
    reconcile: reconcile,
}

/// What the user asks for.
#[derive(Deserialize)]
pub struct Spec {
    #[serde(default)]
    image: String,
    /// Without it, an autoscaler sets them.
    replicas: Option<i32>,
    /// A ConfigMap with the colour.
    settings: Option<String>,
    #[serde(default)]
    storage: bool,
    /// When it ends.
    until: Option<String>,
}

#[derive(Default, Deserialize)]
struct Config {
    registry: Option<String>,
}

/// Says what shall exist for a `Website`, and how it is.
///
/// # Errors
/// A child, the configuration or what is looked up cannot be read.
pub fn reconcile(request: &Request<Object<Spec>>) -> Result<Response, Error> {
    let (name, spec) = (request.object.name(), &request.object.spec);
    if spec.image.is_empty() {
        return Ok(Response::invalid("spec.image is empty: say which image runs"));
    }
    // Both are RFC 3339 in UTC.
    if spec.until.as_ref().is_some_and(|until| clock::now_text() >= *until) {
        return Ok(Response::done().no_children().removes_many().status(json!({ "readyReplicas": 0 })));
    }
    let mut colour = None;
    if let Some(settings) = &spec.settings {
        let Some(found) = lookup::get::<ConfigMap>(None, settings)? else {
            let condition = Condition::new("Available", ConditionStatus::Unknown, "SettingsMissing", "");
            let message = format!("there is no ConfigMap {settings}");
            return Ok(Response::wait("SettingsMissing", message, 30).condition(condition));
        };
        colour = found.data.and_then(|data| data.get("colour").cloned());
    }
    let registry = request.config::<Config>()?.registry;
    let image = registry.map_or_else(|| spec.image.clone(), |registry| format!("{registry}/{}", spec.image));
    let live = request.child::<Deployment>(name)?;
    let ready = live.and_then(|deployment| deployment.status?.ready_replicas).unwrap_or_default();
    let mut response = Response::done().status(json!({ "readyReplicas": ready }));
    if spec.storage {
        let options = Options { handling: Handling::Create, on_removal: RemovalPolicy::Keep, ..Options::default() };
        response = response.child_with(claim(name), options);
    }
    let unmanaged = if spec.replicas.is_none() { vec!["/spec/replicas".to_owned()] } else { Vec::new() };
    let options = Options { on_immutable: ImmutablePolicy::Recreate, unmanaged, ..Options::default() };
    response = response.child_with(deployment(name, &image, colour.as_deref(), spec.replicas), options);
    response = tell(response, ready, spec.replicas.unwrap_or(1));
    Ok(if spec.until.is_some() { response.requeue_after(60) } else { response })
}

/// How it is: a condition, an event and a measurement.
fn tell(response: Response, ready: i32, wanted: i32) -> Response {
    let is_available = ready >= wanted;
    let (reason, phase) = if is_available { ("AllReady", "serving") } else { ("Starting", "starting") };
    let message = format!("{ready} of {wanted} Pods are ready");
    let response = response
        .condition(Condition::when("Available", is_available, reason, message))
        .measurement(Measurement::new("pods_ready", f64::from(ready)).label("phase", phase));
    if is_available { response.event(Event::normal("Available", format!("{ready} Pods are ready"))) } else { response }
}

fn claim(name: &str) -> impl Serialize + use<> {
    json!({
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": { "name": format!("{name}-data") },
        "spec": { "accessModes": ["ReadWriteOnce"], "resources": { "requests": { "storage": "1Gi" } } },
    })
}

fn deployment(name: &str, image: &str, colour: Option<&str>, replicas: Option<i32>) -> impl Serialize + use<> {
    let annotations = match colour {
        Some(colour) => json!({ "example.com/colour": colour }),
        None => json!({}),
    };
    let template = json!({
        "metadata": { "labels": { "app": name }, "annotations": annotations },
        "spec": { "containers": [{ "name": "app", "image": image }] },
    });
    let selector = json!({ "matchLabels": { "app": name } });
    let spec = match replicas {
        Some(replicas) => json!({ "replicas": replicas, "selector": selector, "template": template }),
        None => json!({ "selector": selector, "template": template }),
    };
    json!({ "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": name }, "spec": spec })
}
