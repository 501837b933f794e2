//! The reference plugin `app-service`: an `AppService` becomes a Deployment and a Service. It writes and deletes nothing
//! itself: it returns the children that should exist, and the host applies them.

pub mod api;
#[cfg(feature = "crd")]
pub mod crd;

use api::{AppServiceSpec, AppServiceStatus};
use pilothouse_pods::workload::{ObservedDeployment, conditions};
use pilothouse_sdk::{Error, Object, Request, Response, json};
use serde::Serialize;
use serde_json::value::RawValue;

#[cfg(feature = "plugin")]
pilothouse_sdk::plugin! {
    name: "app-service",
    reconciles: "apps.example.com/v1" "AppService",
    children: ["apps/v1" "Deployment" reads ["/status"], "v1" "Service" reads []],
    reads: ["/spec"],
    reconcile: reconcile,
}

/// An `AppService` as the API serves it.
pub type AppService = Object<AppServiceSpec>;

/// The desired children, the status and the conditions of an `AppService`.
///
/// # Errors
/// The observed Deployment cannot be read.
pub fn reconcile(request: &Request<AppService>) -> Result<Response, Error> {
    respond(request, deployment(&request.object))
}

/// As [`reconcile`], with a Deployment that the caller made. A plugin that builds upon this one changes the Deployment and
/// leaves the rest to this function.
///
/// # Errors
/// The observed Deployment cannot be read.
pub fn respond(request: &Request<AppService>, deployment: impl Serialize) -> Result<Response, Error> {
    let app = &request.object;
    let observed = request.child::<ObservedDeployment>(app.name())?.unwrap_or_default().0;
    let status = AppServiceStatus {
        replicas: observed.status.replicas,
        ready_replicas: observed.status.ready_replicas,
        selector: format!("app.kubernetes.io/component=web,app.kubernetes.io/name={}", app.name()),
        url: format!("http://{}.{}.svc", app.name(), app.namespace()),
    };
    let response = Response::done().child(deployment).child(service(app)).status(status);
    Ok(conditions(&observed, app.spec.replicas).into_iter().fold(response, Response::condition))
}

/// The desired Deployment.
pub fn deployment(app: &AppService) -> Box<RawValue> {
    let labels = json!({ "app.kubernetes.io/name": app.name(), "app.kubernetes.io/component": "web" });
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": { "name": app.name(), "labels": labels },
        "spec": {
            "replicas": app.spec.replicas,
            "selector": { "matchLabels": labels },
            "template": {
                "metadata": { "labels": labels },
                "spec": { "containers": [{
                    "name": "app",
                    "image": app.spec.image,
                    "ports": [{ "name": "http", "containerPort": app.spec.port, "protocol": "TCP" }],
                    "readinessProbe": { "tcpSocket": { "port": "http" } },
                }] },
            },
        },
    })
}

/// The desired Service.
pub fn service(app: &AppService) -> Box<RawValue> {
    let labels = json!({ "app.kubernetes.io/name": app.name(), "app.kubernetes.io/component": "web" });
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": app.name(), "labels": labels },
        "spec": {
            "type": "ClusterIP",
            "selector": labels,
            "ports": [{ "name": "http", "port": 80, "targetPort": "http", "protocol": "TCP" }],
        },
    })
}
