//! The children, each a plain function of the object.

use crate::Sextet;
use serde_json::{Value, json};

/// Two ConfigMaps with the same data.
pub fn config_maps(sextet: &Sextet) -> [Value; 2] {
    ["a", "b"].map(|suffix| {
        let mut child = child(sextet, "ConfigMap", suffix);
        child["data"] = json!(sextet.spec.data);
        child
    })
}

/// Two Secrets with the same data.
pub fn secrets(sextet: &Sextet) -> [Value; 2] {
    ["a", "b"].map(|suffix| {
        let mut child = child(sextet, "Secret", suffix);
        child["data"] = json!({ "secret": sextet.spec.secret });
        child
    })
}

/// A Service without an address of its own.
pub fn service(sextet: &Sextet) -> Value {
    let mut child = child(sextet, "Service", "s");
    let port = json!({ "name": "http", "port": sextet.spec.port, "targetPort": "http", "protocol": "TCP" });
    child["spec"] = json!({ "clusterIP": "None", "ports": [port] });
    child
}

/// A ServiceAccount.
pub fn service_account(sextet: &Sextet) -> Value {
    let mut child = child(sextet, "ServiceAccount", "s");
    child["automountServiceAccountToken"] = sextet.spec.mount.into();
    child
}

/// Whether the object leaves a child out.
pub fn is_left_out(sextet: &Sextet, child: &Value) -> bool {
    sextet.spec.without.iter().any(|without| {
        let (kind, suffix) = without.split_once('/').unwrap_or_default();
        child["kind"] == kind && child["metadata"]["name"] == name(sextet, suffix)
    })
}

fn child(sextet: &Sextet, kind: &str, suffix: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": kind, "metadata": { "name": name(sextet, suffix) } })
}

fn name(sextet: &Sextet, suffix: &str) -> String {
    format!("{}-{suffix}", sextet.name())
}
