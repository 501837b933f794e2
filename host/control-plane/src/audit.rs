//! The audit policy: two lines per write request, one when it has arrived and one when it is answered, with who, what and
//! from which program, without bodies. Reads are never logged.

use serde_json::json;

pub(crate) fn policy() -> String {
    json!({
        "apiVersion": "audit.k8s.io/v1",
        "kind": "Policy",
        "rules": [
            {"level": "Metadata", "verbs": ["create", "update", "patch", "delete", "deletecollection"]},
            {"level": "None"},
        ],
    })
    .to_string()
}
