//! The audit policy: one line per write request, with who, what and from which program, without bodies.
//! Reads are never logged.

use serde_json::json;

pub(crate) fn policy() -> String {
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "omitStages": ["RequestReceived"],
        "rules": [
            {"level": "Metadata", "verbs": ["create", "update", "patch", "delete", "deletecollection"]},
            {"level": "None"},
        ],
    })
    .to_string()
}
