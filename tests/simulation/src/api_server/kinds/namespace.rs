//! Namespaces.

use serde_json::json;

use super::{
    Gone, Strategy,
    edit::{copy_field, object_at},
};
use crate::api_server::names::NameRule;

/// The finalizer in the spec of every namespace, which goes once the namespace is empty.
pub(crate) const FINALIZER: &str = "kubernetes";

/// Namespaces.
pub(super) static NAMESPACE: Strategy = Strategy {
    names: NameRule::Label,
    gone: Gone::Object,
    default: |object| {
        let name = object["metadata"]["name"].clone();
        if name.as_str().is_some_and(|name| !name.is_empty())
            && let Some(labels) = object_at(object, &["metadata", "labels"])
        {
            labels.insert("kubernetes.io/metadata.name".to_owned(), name);
        }
        if let Some(status) = object_at(object, &["status"]) {
            super::edit::default_to(status, "phase", "Active");
        }
    },
    prepare_create: |object, _, _| {
        object["spec"] = json!({"finalizers": [FINALIZER]});
        object["status"] = json!({"phase": "Active"});
    },
    prepare_update: |new, old, _, _| {
        copy_field(old, new, "spec");
        copy_field(old, new, "status");
    },
    ..Strategy::USUAL
};
