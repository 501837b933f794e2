//! The probes of a server. They let a big model load, and do not take a server out that is only busy.

use crate::server::Server;
use pilothouse_pods::fields::set_unless_empty;
use serde_json::{Value, json};

/// How often a server that starts is asked, in seconds.
const STARTUP_PERIOD: u32 = 10;

/// How long a server has to answer, in seconds. One that computes for many requests answers late, and a second is too little.
const TIMEOUT: u32 = 15;

/// How many times in a row a server that runs may fail to answer.
const FAILURES: u32 = 10;

/// Sets the probes of the server's container.
pub fn set(server: &Server<'_>, container: &mut Value) {
    let probe = |period: u32, failures: u32| {
        let mut probe = check(server);
        probe["periodSeconds"] = json!(period);
        probe["timeoutSeconds"] = json!(TIMEOUT);
        probe["failureThreshold"] = json!(failures);
        probe
    };
    let attempts = server.startup_seconds().div_ceil(STARTUP_PERIOD);
    set_unless_empty(container, "startupProbe", probe(STARTUP_PERIOD, attempts));
    set_unless_empty(container, "readinessProbe", probe(5, FAILURES));
    set_unless_empty(container, "livenessProbe", probe(10, FAILURES));
}

/// What is asked: the path that tells the engine's health, or else only its port.
fn check(server: &Server<'_>) -> Value {
    match server.engine.health_path.as_str() {
        "" => json!({ "tcpSocket": { "port": "http" } }),
        path => json!({ "httpGet": { "path": path, "port": "http", "scheme": "HTTP" } }),
    }
}
