//! A metrics API that tests serve: external metrics whose values a test sets. The API server finds it by an `APIService`, as it finds
//! the adapters of Prometheus or KEDA; whoever reads a metric asks the API server.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use anyhow::Result;
use axum::{
    Router,
    extract::{Path, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use kube::{
    Client,
    api::{Patch, PatchParams},
};
use serde_json::{Value, json};
use tokio::task::AbortHandle;

use crate::{
    cluster::{PATIENCE, api, condition},
    tls::TlsListener,
    wait::{Look, eventually},
};

const GROUP: &str = "external.metrics.k8s.io";
const VERSION: &str = "v1beta1";

/// The namespace of the Service that leads to the server.
const NAMESPACE: &str = "default";

/// A running metrics API. Stops when it is dropped.
pub struct MetricsApi {
    values: Arc<Values>,
    server: AbortHandle,
}

/// The values by the names of their metrics, as quantities.
#[derive(Default)]
struct Values(Mutex<BTreeMap<String, String>>);

impl MetricsApi {
    /// Starts it and registers it, in a control plane that has no other that runs.
    ///
    /// # Errors
    /// If the API server does not reach it.
    pub async fn start(client: &Client) -> Result<Self> {
        let listener = TlsListener::bind().await?;
        let port = listener.port()?;
        let values = Arc::new(Values::default());
        let root = format!("/apis/{GROUP}/{VERSION}");
        let router = Router::new()
            .route(&root, get(discovery))
            .route(&format!("{root}/namespaces/{{namespace}}/{{metric}}"), get(value))
            .with_state(values.clone());
        let server = tokio::spawn(async move { axum::serve(listener, router).await }).abort_handle();
        let started = Self { values, server };
        register(client, port).await?;
        Ok(started)
    }

    /// Sets a metric to a quantity.
    pub fn set(&self, metric: &str, quantity: &str) {
        self.values.lock().insert(metric.to_owned(), quantity.to_owned());
    }

    /// Takes a metric away: whoever asks for it gets an error.
    pub fn remove(&self, metric: &str) {
        self.values.lock().remove(metric);
    }
}

impl Drop for MetricsApi {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Values {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the API server asks for to know whether the API is available.
async fn discovery() -> Response {
    answer(
        StatusCode::OK,
        &json!({
            "kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("{GROUP}/{VERSION}"),
            "resources": [{"name": "externalmetrics", "singularName": "", "namespaced": true, "kind": "ExternalMetricValueList", "verbs": ["get"]}],
        }),
    )
}

async fn value(State(values): State<Arc<Values>>, Path((_, metric)): Path<(String, String)>) -> Response {
    let Some(value) = values.lock().get(&metric).cloned() else {
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
            "message": format!("there is no metric {metric}"),
        });
        return answer(StatusCode::NOT_FOUND, &status);
    };
    let item = json!({"metricName": metric, "metricLabels": {}, "timestamp": jiff::Timestamp::now().to_string(), "value": value});
    let list = json!({"kind": "ExternalMetricValueList", "apiVersion": format!("{GROUP}/{VERSION}"), "metadata": {}, "items": [item]});
    answer(StatusCode::OK, &list)
}

fn answer(status: StatusCode, body: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

/// Leads the API server to the server. No proxy forwards the addresses of Services here, so it is one that stands for a host.
async fn register(client: &Client, port: u16) -> Result<()> {
    let name = format!("{VERSION}.{GROUP}");
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "metrics-api"},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    });
    let registration = json!({
        "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": {"name": name},
        "spec": {
            "group": GROUP, "version": VERSION, "groupPriorityMinimum": 100, "versionPriority": 100, "insecureSkipTLSVerify": true,
            "service": {"namespace": NAMESPACE, "name": "metrics-api", "port": port},
        },
    });
    // There may have been one before.
    let parameters = PatchParams::apply("tests").force();
    let services = api(client, "Service", Some(NAMESPACE))?;
    services.patch("metrics-api", &parameters, &Patch::Apply(service)).await?;
    let registrations = api(client, "APIService", None)?;
    registrations.patch(&name, &parameters, &Patch::Apply(registration)).await?;
    eventually(PATIENCE, "the metrics API to be available", async || {
        let registered = serde_json::to_value(registrations.get(&name).await?)?;
        let available = condition(&registered, "Available");
        Ok(Look::of(available["status"] == "True", available))
    })
    .await
}
