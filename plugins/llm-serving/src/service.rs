//! The Service by which clients reach a server.

use crate::container::PORT_NAME;
use crate::labels;
use crate::server::Server;
use pilothouse_sdk::Kind;
use serde_json::{Value, json};

/// An observed Service, of which only its existence matters.
pub struct ObservedService;

impl Kind for ObservedService {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Service";
}

/// The Service.
pub fn service(server: &Server<'_>) -> Value {
    let (role, clients) = labels::SERVICE;
    let mut own = labels::of(server);
    own[role] = json!(clients);
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": server.workload(), "labels": own },
        "spec": {
            "type": "ClusterIP",
            "selector": labels::clients_selector(server),
            "ports": [{ "name": PORT_NAME, "port": server.port, "targetPort": PORT_NAME, "protocol": "TCP" }],
        },
    })
}
