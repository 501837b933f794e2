//! PersistentVolumeClaims.

use serde_json::{Value, json};

use super::{
    Gone, Strategy,
    edit::{at, copy_field, default_to, object_at},
};

/// The finalizer of every claim.
const PROTECTION: &str = "kubernetes.io/pvc-protection";

/// PersistentVolumeClaims.
pub(super) static VOLUME_CLAIM: Strategy = Strategy {
    gone: Gone::Object,
    default: |object| {
        if let Some(spec) = object_at(object, &["spec"]) {
            default_to(spec, "volumeMode", "Filesystem");
        }
        if let Some(status) = object_at(object, &["status"]) {
            default_to(status, "phase", "Pending");
        }
    },
    prepare_create: |object, _, _| {
        object["status"] = json!({"phase": "Pending"});
        // Admission lets a claim that a Pod uses stay.
        if let Some(metadata) = object_at(object, &["metadata"]) {
            let mut finalizers = metadata.get("finalizers").and_then(Value::as_array).cloned().unwrap_or_default();
            if !finalizers.iter().any(|known| known == PROTECTION) {
                finalizers.push(PROTECTION.into());
            }
            metadata.insert("finalizers".to_owned(), finalizers.into());
        }
    },
    prepare_update: |new, old, _, _| copy_field(old, new, "status"),
    validate: |object, _, causes| {
        if at(object, &["spec", "accessModes"]).as_array().is_none_or(Vec::is_empty) {
            causes.required("spec.accessModes", "at least 1 access mode is required");
        }
        if at(object, &["spec", "resources", "requests", "storage"]).is_null() {
            causes.required("spec.resources[storage]", "");
        }
    },
    validate_update: |new, old, _, causes| {
        if at(new, &["spec", "accessModes"]) != at(old, &["spec", "accessModes"]) {
            causes.forbidden(
                "spec",
                "spec is immutable after creation except resources.requests and volumeAttributesClassName",
            );
        }
    },
    ..Strategy::USUAL
};
