//! Who owns fields of an object, as its `metadata.managedFields` says. To the API server, the patches of a manager and the applies of the
//! same manager are two owners: what the patches own stays when an apply no longer has it. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{FieldsV1, ManagedFieldsEntry};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use crate::labels;

/// How the API server calls the fields of a manager that come from an apply, and those that come from anything else.
const APPLY: &str = "Apply";
const UPDATE: &str = "Update";

/// An entry without its fields, which are most of it.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Owner<'a> {
    #[serde(borrow, default)]
    manager: std::borrow::Cow<'a, str>,
    #[serde(borrow, default)]
    operation: std::borrow::Cow<'a, str>,
    #[serde(default)]
    subresource: Option<Box<str>>,
}

/// Whether patches of one of the host's managers own fields, after the text of `managedFields`.
pub(crate) fn is_patched(owners: &RawValue) -> bool {
    // The search in the text spares most objects the parsing.
    let text = owners.get();
    if !text.contains(labels::FIELD_MANAGERS) || !text.contains(UPDATE) {
        return false;
    }
    let owners: Vec<Owner<'_>> = serde_json::from_str(text).unwrap_or_default();
    owners.iter().any(|owner| {
        owner.operation == UPDATE && owner.subresource.is_none() && owner.manager.starts_with(labels::FIELD_MANAGERS)
    })
}

/// The owners of fields, with those that patches of a manager own among those of its applies; none if there are none of either.
pub(crate) fn of_applies(manager: &str, entries: Vec<ManagedFieldsEntry>) -> Option<Vec<ManagedFieldsEntry>> {
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
        let owners = of_applies("pilothouse/web", serde_json::from_value(entries)?);
        owners.map(serde_json::to_value).transpose()
    }

    #[test]
    fn fields_of_patches_become_those_of_applies() -> serde_json::Result<()> {
        let applied = json!({"f:spec": {"f:replicas": {}, "f:ports": {r#"k:{"port":1}"#: {".": {}}}}});
        let patched = json!({"f:spec": {"f:ports": {r#"k:{"port":1}"#: {"f:name": {}}}}, "f:data": {}});
        let both = json!({"f:spec": {"f:replicas": {}, "f:ports": {r#"k:{"port":1}"#: {".": {}, "f:name": {}}}}, "f:data": {}});
        let ours = |operation: &str, fields: Value| entry("pilothouse/web", operation, fields);
        let (theirs, status) =
            (entry("theirs", UPDATE, json!({"f:spec": {"f:paused": {}}})), status_of("pilothouse/web"));
        let entries = json!([ours(APPLY, applied), theirs, status, ours(UPDATE, patched)]);
        assert_eq!(taken_over(entries)?, Some(json!([ours(APPLY, both), theirs, status])));
        Ok(())
    }

    #[test]
    fn what_patches_of_ours_do_not_own_stays() -> serde_json::Result<()> {
        let ours = |operation: &str| entry("pilothouse/web", operation, json!({}));
        let of_others = json!([ours(APPLY), entry("theirs", UPDATE, json!({})), status_of("pilothouse/web")]);
        for (entries, why) in [
            (of_others, "nothing is patched"),
            (json!([entry("theirs", APPLY, json!({})), ours(UPDATE)]), "nothing is applied"),
            (json!([]), "nobody owns anything"),
        ] {
            assert_eq!(taken_over(entries)?, None, "{why}");
        }
        Ok(())
    }

    #[test]
    fn patches_of_the_host_are_noticed() -> serde_json::Result<()> {
        for (entries, expected) in [
            (json!([entry("pilothouse/web", APPLY, json!({})), entry("pilothouse/web", UPDATE, json!({}))]), true),
            (json!([entry("pilothouse/web", APPLY, json!({})), entry("theirs", UPDATE, json!({}))]), false),
            (json!([entry("pilothouse/web", APPLY, json!({})), status_of("pilothouse/web")]), false),
            (json!([entry("pilothouse-handover", APPLY, json!({"f:Update": {}}))]), false),
            (json!([]), false),
            (json!("pilothouse/ Update"), false),
        ] {
            assert_eq!(is_patched(&RawValue::from_string(entries.to_string())?), expected, "{entries}");
        }
        Ok(())
    }
}
