//! The JSON that plugins return: read, and rid of what the host does not take from them.

use serde_json::{Map, Value};

use super::Refusal;

/// The object that a text holds; `what` names it in the refusal.
pub(super) fn parse_object(what: &str, text: &str) -> Result<Map<String, Value>, Refusal> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Refusal::Malformed { what: what.to_owned(), why: "it is not a JSON object".to_owned() }),
        Err(error) => Err(Refusal::Malformed { what: what.to_owned(), why: error.to_string() }),
    }
}

/// The text at a path of keys.
pub(super) fn text(body: &Map<String, Value>, path: &[&str]) -> Option<String> {
    let (last, parents) = path.split_last()?;
    let parent = parents.iter().try_fold(body, |at, key| at.get(*key)?.as_object())?;
    parent.get(*last)?.as_str().map(str::to_owned)
}

/// The host's own fields of a status are not the plugin's to write.
pub(super) fn without_host_fields(mut status: Map<String, Value>) -> Map<String, Value> {
    status.remove("conditions");
    status.remove("observedGeneration");
    drop_nulls(&mut status);
    status
}

/// Server-side apply has no use for nulls: a field that is not there is not applied.
pub(super) fn drop_nulls(object: &mut Map<String, Value>) {
    object.retain(|_, value| !value.is_null());
    for value in object.values_mut() {
        match value {
            Value::Object(object) => drop_nulls(object),
            Value::Array(items) => items.iter_mut().filter_map(Value::as_object_mut).for_each(drop_nulls),
            _ => {}
        }
    }
}
