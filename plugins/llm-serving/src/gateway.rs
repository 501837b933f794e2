//! The children by which the Gateway API leads to a server: an HTTPRoute, and an InferencePool of its inference extension. It makes no
//! Gateway and no endpoint picker.

use crate::api::{HttpRoute, InferencePool};
use crate::labels;
use crate::server::Server;
use pilothouse_sdk::Kind;
use serde::Deserialize;
use serde_json::{Value, json};

/// The port of an endpoint picker, if nobody says: that of the extension's own.
const PICKER_PORT: u32 = 9002;

/// No time limit: an answer is as long as its client asks for, and gateways give up after seconds.
const NO_LIMIT: &str = "0s";

/// A route, of which only its existence matters.
#[derive(Deserialize)]
pub struct Route {}

impl Kind for Route {
    const API_VERSION: &'static str = "gateway.networking.k8s.io/v1";
    const KIND: &'static str = "HTTPRoute";
    const FIELDS: &'static [&'static str] = &["/metadata/name"];
}

/// A pool, of which only its existence matters.
#[derive(Deserialize)]
pub struct Pool {}

impl Kind for Pool {
    const API_VERSION: &'static str = "inference.networking.k8s.io/v1";
    const KIND: &'static str = "InferencePool";
    const FIELDS: &'static [&'static str] = &["/metadata/name"];
}

/// What a route leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// The Service.
    Service,
    /// The InferencePool.
    Pool,
}

/// The InferencePool.
pub fn pool(server: &Server<'_>, given: &InferencePool) -> Value {
    let picker = &given.endpoint_picker;
    let mut reference = json!({ "name": picker.name, "port": { "number": picker.port.unwrap_or(PICKER_PORT) } });
    if let Some(mode) = picker.failure_mode {
        reference["failureMode"] = json!(mode);
    }
    json!({
        "apiVersion": Pool::API_VERSION,
        "kind": Pool::KIND,
        "metadata": { "name": server.workload(), "labels": labels::of(server) },
        "spec": {
            "selector": { "matchLabels": labels::clients_selector(server) },
            "targetPorts": [{ "number": server.port }],
            "endpointPickerRef": reference,
        },
    })
}

/// The HTTPRoute.
pub fn route(server: &Server<'_>, given: &HttpRoute, backend: Backend) -> Value {
    let backend = match backend {
        Backend::Service => json!({ "name": server.workload(), "port": server.port }),
        Backend::Pool => {
            json!({ "group": "inference.networking.k8s.io", "kind": Pool::KIND, "name": server.workload() })
        }
    };
    let path = json!({ "type": "PathPrefix", "value": given.path.as_deref().unwrap_or("/") });
    let mut spec = json!({
        "parentRefs": [given.gateway],
        "rules": [{
            "matches": [{ "path": path }],
            "backendRefs": [backend],
            "timeouts": { "request": NO_LIMIT, "backendRequest": NO_LIMIT },
        }],
    });
    if !given.hostnames.is_empty() {
        spec["hostnames"] = json!(given.hostnames);
    }
    json!({
        "apiVersion": Route::API_VERSION,
        "kind": Route::KIND,
        "metadata": { "name": server.workload(), "labels": labels::of(server) },
        "spec": spec,
    })
}
