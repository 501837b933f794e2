//! The Service by which clients reach a server.

use crate::container::PORT_NAME;
use crate::labels;
use crate::server::Server;
use serde_json::{Value, json};

/// The Service.
pub fn service(server: &Server<'_>) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": { "name": server.workload(), "labels": labels::of(server) },
        "spec": {
            "type": "ClusterIP",
            "selector": labels::clients_selector(server),
            "ports": [{ "name": PORT_NAME, "port": server.port, "targetPort": PORT_NAME, "protocol": "TCP" }],
        },
    })
}
