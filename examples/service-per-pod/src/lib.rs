//! A Service for each Pod of the StatefulSets that ask for it, by two annotations: `service-per-pod-label` is the label whose value is the Pod's name,
//! `service-per-pod-ports` has the ports, such as `80:8080,443:8443`.

use pilothouse_sdk::{Request, Response};
use serde_json::{Value, json};

pilothouse_sdk::plugin! {
    name: "service-per-pod",
    reconciles: "apps/v1" "StatefulSet",
    children: ["v1" "Service"],
    decorates: "" annotations "service-per-pod-label,service-per-pod-ports",
    reads: ["/metadata/annotations", "/spec/replicas"],
    reconcile: reconcile,
}

/// Asks for one Service for each Pod.
pub fn reconcile(request: &Request<Value>) -> Response {
    let (metadata, replicas) = (&request.object["metadata"], request.object["spec"]["replicas"].as_u64());
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let label = text(&metadata["annotations"]["service-per-pod-label"]);
    let ports = text(&metadata["annotations"]["service-per-pod-ports"]);
    let Some(ports) = ports.split(',').map(port).collect::<Option<Vec<_>>>() else {
        return Response::invalid(format!(
            "the annotation service-per-pod-ports is '{ports}', and not such as 80:8080"
        ));
    };
    let service = |number: u64| {
        let pod = format!("{}-{number}", text(&metadata["name"]));
        json!({
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": { "name": pod, "labels": { "app": "service-per-pod" } },
            "spec": { "selector": { label.as_str(): pod }, "ports": ports },
        })
    };
    (0..replicas.unwrap_or(1)).map(service).fold(Response::done().no_children(), Response::child)
}

fn port(text: &str) -> Option<Value> {
    let (port, target) = text.split_once(':')?;
    let (port, target): (u16, u16) = (port.parse().ok()?, target.parse().ok()?);
    Some(json!({ "name": format!("port-{port}"), "port": port, "targetPort": target }))
}
