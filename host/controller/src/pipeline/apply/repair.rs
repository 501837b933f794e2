//! Merge patches where server-side apply by itself leads to what the API server refuses, and what follows from them: to the API
//! server, the manager of a patch and the same manager of an apply are two owners. What the first one owns stays when an apply no
//! longer has it. Decides nothing about what is patched (`plan/list_repair.rs`, `left_over.rs`).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry, ObjectMeta};
use kube::api::Patch;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::{
    applier::{Applier, merging},
    target::Target,
};
use crate::{labels, object::Object};

/// How the API server calls the fields of a manager that come from an apply, and those that come from anything else.
const APPLY: &str = "Apply";
const UPDATE: &str = "Update";

/// Patches a child, and gives it as it is then. The apply that follows takes over the fields.
///
/// # Errors
/// [`kube::Error`]: 409 if the child is not as the patch says that it was.
pub(super) async fn patch(
    applier: &Applier<'_>,
    target: &Target<'_>,
    name: &str,
    patch: &Value,
) -> Result<Object, kube::Error> {
    let incoming = target.api.patch(name, &merging(&applier.plugin.field_manager), &Patch::Merge(patch)).await?;
    Ok(incoming.into_object(&target.installed.resource))
}

/// A patch that makes the fields that patches of this manager own those of its applies, if there are any: the next apply removes those
/// that it does not have. `child` is an answer of the API server, and has to be still as it says when it is patched.
pub(super) fn take_over(manager: &str, child: &RawValue) -> Option<Value> {
    #[derive(Deserialize)]
    struct Child {
        metadata: ObjectMeta,
    }
    // The search in the text spares most answers to be parsed a second time.
    if !child.get().contains(UPDATE) {
        return None;
    }
    let Child { metadata } = serde_json::from_str(child.get()).ok()?;
    let owners = of_applies(manager, metadata.managed_fields?)?;
    // Without its mark the child counts as changed, so that the next apply is not forgotten if a conflict stops it now.
    let annotations = json!({labels::APPLIED: null});
    let (version, owners) = (metadata.resource_version, json!(owners));
    Some(json!({"metadata": {"resourceVersion": version, "managedFields": owners, "annotations": annotations}}))
}

/// The owners of fields, with those that patches of this manager own among those of its applies; none if there are none of either.
fn of_applies(manager: &str, entries: Vec<ManagedFieldsEntry>) -> Option<Vec<ManagedFieldsEntry>> {
    let is_ours = |entry: &ManagedFieldsEntry, operation: &str| {
        entry.manager.as_deref() == Some(manager)
            && entry.operation.as_deref() == Some(operation)
            && entry.subresource.is_none()
    };
    let (patched, mut others): (Vec<_>, Vec<_>) = entries.into_iter().partition(|entry| is_ours(entry, UPDATE));
    let applied = others.iter_mut().find(|entry| is_ours(entry, APPLY)).filter(|_| !patched.is_empty())?;
    let fields = applied.fields_v1.get_or_insert(FieldsV1(json!({})));
    patched.into_iter().filter_map(|entry| entry.fields_v1).for_each(|more| add(&mut fields.0, more.0));
    Some(others)
}

/// Adds a set of fields to another one. Such a set has an object for each field, with those under it.
fn add(fields: &mut Value, more: Value) {
    let (Value::Object(fields), Value::Object(more)) = (fields, more) else { return };
    for (field, under) in more {
        add(fields.entry(field).or_insert_with(|| json!({})), under);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(manager: &str, operation: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": operation, "fieldsV1": fields})
    }

    fn status_of(manager: &str) -> Value {
        let mut entry = entry(manager, UPDATE, json!({"f:status": {}}));
        entry["subresource"] = json!("status");
        entry
    }

    fn taken_over(entries: Value) -> serde_json::Result<Option<Value>> {
        let child = json!({"metadata": {"name": "child", "resourceVersion": "7", "managedFields": entries}});
        Ok(take_over("ours", &RawValue::from_string(child.to_string())?))
    }

    #[test]
    fn fields_of_patches_become_those_of_applies() -> serde_json::Result<()> {
        let applied = json!({"f:spec": {"f:replicas": {}, "f:ports": {r#"k:{"port":1}"#: {".": {}}}}});
        let patched = json!({"f:spec": {"f:ports": {r#"k:{"port":1}"#: {"f:name": {}}}}, "f:data": {}});
        let both = json!({"f:spec": {"f:replicas": {}, "f:ports": {r#"k:{"port":1}"#: {".": {}, "f:name": {}}}}, "f:data": {}});
        let theirs = entry("theirs", UPDATE, json!({"f:spec": {"f:paused": {}}}));
        let entries = json!([entry("ours", APPLY, applied), theirs, status_of("ours"), entry("ours", UPDATE, patched)]);
        let owners = json!([entry("ours", APPLY, both), theirs, status_of("ours")]);
        let annotations = json!({labels::APPLIED: null});
        let metadata = json!({"resourceVersion": "7", "managedFields": owners, "annotations": annotations});
        assert_eq!(taken_over(entries)?, Some(json!({"metadata": metadata})));
        Ok(())
    }

    #[test]
    fn what_patches_of_ours_do_not_own_stays() -> serde_json::Result<()> {
        let (apply, update) = (entry("ours", APPLY, json!({})), entry("ours", UPDATE, json!({})));
        for (entries, why) in [
            (json!([apply, entry("theirs", UPDATE, json!({})), status_of("ours")]), "nothing is patched"),
            (json!([entry("theirs", APPLY, json!({})), update]), "nothing is applied"),
            (json!([]), "nobody owns anything"),
            (json!(null), "nobody says who owns what"),
        ] {
            assert_eq!(taken_over(entries)?, None, "{why}");
        }
        Ok(())
    }
}
