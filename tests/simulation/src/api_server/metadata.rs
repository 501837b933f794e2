//! Checks of `metadata`, which all kinds share.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{
    causes::Causes,
    kinds::Kind,
    names::{NameRule, is_label_value, is_qualified_name},
};

/// The most bytes of all annotations.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// Checks the metadata of a new or changed object.
pub(super) fn check(object: &Value, kind: &Kind, causes: &mut Causes) {
    let metadata = &object["metadata"];
    check_name(metadata, kind, causes);
    if kind.namespaced && metadata["namespace"].as_str().is_none_or(str::is_empty) {
        causes.required("metadata.namespace", "");
    }
    for (key, value) in metadata["labels"].as_object().into_iter().flatten() {
        if !is_qualified_name(key) {
            causes.invalid("metadata.labels", &key.as_str().into(), "must be a qualified name");
        }
        if value.as_str().is_some_and(|value| !is_label_value(value)) {
            causes.invalid("metadata.labels", value, "must be a label value");
        }
    }
    let mut size = 0;
    for (key, value) in metadata["annotations"].as_object().into_iter().flatten() {
        if !is_qualified_name(&key.to_lowercase()) {
            causes.invalid("metadata.annotations", &key.as_str().into(), "must be a qualified name");
        }
        size += key.len() + value.as_str().unwrap_or_default().len();
    }
    if size > MAX_ANNOTATIONS {
        causes.too_long("metadata.annotations", MAX_ANNOTATIONS as u64);
    }
    check_owners(&metadata["ownerReferences"], causes);
    check_finalizers(&metadata["finalizers"], causes);
    if kind.strategy.knows_finalizers {
        check_known_finalizers(&metadata["finalizers"], causes);
    }
}

fn check_name(metadata: &Value, kind: &Kind, causes: &mut Causes) {
    let rule = kind.strategy.names;
    let text = |name: &str| metadata[name].as_str().unwrap_or_default();
    if !text("generateName").is_empty() && rule.problem_of_prefix(text("generateName")).is_some() {
        causes.invalid("metadata.generateName", &metadata["generateName"], "is no beginning of a name");
    }
    match text("name") {
        "" => causes.required("metadata.name", "name or generateName is required"),
        name => {
            if let Some(problem) = rule.problem(name).or_else(|| NameRule::PathSegment.problem(name)) {
                causes.invalid("metadata.name", &metadata["name"], problem);
            }
        }
    }
}

fn check_owners(owners: &Value, causes: &mut Causes) {
    let mut controllers = 0;
    let path = "metadata.ownerReferences";
    for owner in owners.as_array().into_iter().flatten() {
        for field in ["apiVersion", "kind", "name", "uid"] {
            if owner[field].as_str().is_none_or(str::is_empty) {
                causes.invalid(format!("{path}.{field}"), &owner[field], "must not be empty");
            }
        }
        if owner["apiVersion"] == "v1" && owner["kind"] == "Event" {
            causes.invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner");
        }
        if owner["controller"] == true {
            controllers += 1;
            if controllers > 1 {
                let why = "Only one reference can have Controller set to true";
                causes.invalid("metadata.ownerReferences", owners, why);
            }
        }
    }
}

fn check_finalizers(finalizers: &Value, causes: &mut Causes) {
    let names: Vec<_> = finalizers.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for name in names.iter().filter(|name| !is_qualified_name(name)) {
        causes.invalid("metadata.finalizers", &(*name).into(), "must be a qualified name");
    }
    if names.contains(&"orphan") && names.contains(&"foregroundDeletion") {
        causes.invalid("metadata.finalizers", finalizers, "finalizer foregroundDeletion and orphan cannot be both set");
    }
}

/// Checks the finalizers of an object of a built-in kind: each is one that the server knows, or has a domain.
fn check_known_finalizers(finalizers: &Value, causes: &mut Causes) {
    for (index, name) in finalizers.as_array().into_iter().flatten().enumerate() {
        let text = name.as_str().unwrap_or_default();
        if !text.contains('/') && !["orphan", "foregroundDeletion", "kubernetes"].contains(&text) {
            let why = "name is neither a standard finalizer name nor is it fully qualified";
            causes.invalid(format!("metadata.finalizers[{index}]"), name, why);
        }
    }
}

/// Checks a change of the metadata.
pub(super) fn check_change(new: &Value, old: &Value, causes: &mut Causes) {
    let (new, old) = (&new["metadata"], &old["metadata"]);
    if !old["deletionTimestamp"].is_null() {
        let set = |metadata: &Value| -> BTreeSet<String> {
            let names = metadata["finalizers"].as_array().into_iter().flatten();
            names.filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let added: Vec<_> = set(new).difference(&set(old)).cloned().collect();
        if !added.is_empty() {
            let why = "no new finalizers can be added if the object is being deleted, found new finalizers";
            causes.forbidden("metadata.finalizers", &format!("{why} {added:?}"));
        }
    }
    for field in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds"] {
        if new[field] != old[field] {
            causes.invalid(format!("metadata.{field}"), &new[field], "field is immutable");
        }
    }
}

/// Removes the second of two equal owner references.
pub(super) fn remove_duplicate_owners(object: &mut Value) {
    if let Some(owners) = object.pointer_mut("/metadata/ownerReferences").and_then(Value::as_array_mut) {
        let mut known: Vec<Value> = Vec::with_capacity(owners.len());
        for owner in owners.drain(..) {
            if !known.contains(&owner) {
                known.push(owner);
            }
        }
        *owners = known;
    }
}
