//! The fields that nobody owns: those that the server itself keeps.

use std::sync::LazyLock;

use serde_json::json;

use crate::api_server::fields::Set;

static NOBODYS: LazyLock<Set> = LazyLock::new(|| {
    let fields = json!({
        "f:apiVersion": {},
        "f:kind": {},
        "f:metadata": {
            ".": {},
            "f:clusterName": {},
            "f:creationTimestamp": {},
            "f:generation": {},
            "f:managedFields": {},
            "f:name": {},
            "f:namespace": {},
            "f:resourceVersion": {},
            "f:selfLink": {},
            "f:uid": {},
        },
    });
    fields.as_object().map(Set::parse).unwrap_or_default()
});

/// The set without the fields that nobody owns.
pub(super) fn strip(set: &Set) -> Set {
    set.difference(&NOBODYS)
}
