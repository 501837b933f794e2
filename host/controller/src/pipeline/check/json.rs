//! Parses the JSON that plugins return and removes nulls and the host's own fields. Pure.

use std::fmt::Display;

use serde_json::{Map, Value};

use super::refusal::Refusal;
use crate::schema::Cursor;

/// Parses a JSON object. `what` names it in the refusal.
pub(super) fn parse_object(what: impl Display, text: &str) -> Result<Map<String, Value>, Refusal> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(Refusal::Malformed { what: what.to_string(), why: "it is not a JSON object".to_owned() }),
        Err(error) => Err(Refusal::Malformed { what: what.to_string(), why: error.to_string() }),
    }
}

/// The string at a path of keys.
pub(super) fn text(body: &Map<String, Value>, path: &[&str]) -> Option<String> {
    let (last, parents) = path.split_last()?;
    let parent = parents.iter().try_fold(body, |at, key| at.get(*key)?.as_object())?;
    parent.get(*last)?.as_str().map(str::to_owned)
}

/// Removes the fields of a status that only the host writes, and nulls. `at` is the place of the status in the schema.
pub(super) fn without_host_fields(mut status: Map<String, Value>, at: Cursor<'_>) -> Map<String, Value> {
    status.remove("conditions");
    status.remove("observedGeneration");
    drop_nulls(&mut status, at);
    status
}

/// Removes the fields that are null. Plugins write null for "no value", for which server-side apply expects a missing field. Null
/// stays where the schema allows it as a value.
pub(super) fn drop_nulls(object: &mut Map<String, Value>, at: Cursor<'_>) {
    // Most answers have none, and to look each field up in the schema costs much more than to look for one.
    if object.values().any(has_null) {
        drop_nulls_of(object, at);
    }
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(object) => object.values().any(has_null),
        Value::Array(items) => items.iter().any(has_null),
        _ => false,
    }
}

fn drop_nulls_of(object: &mut Map<String, Value>, at: Cursor<'_>) {
    object.retain(|key, value| !value.is_null() || at.field(key).takes_null());
    for (key, value) in object {
        drop_nulls_below(value, at.field(key));
    }
}

fn drop_nulls_below(value: &mut Value, at: Cursor<'_>) {
    match value {
        _ if at.is_free_form() => {}
        Value::Object(object) => drop_nulls_of(object, at),
        Value::Array(items) => items.iter_mut().for_each(|item| drop_nulls_below(item, at.items())),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::samples;

    fn without_nulls(value: &Value, at: Cursor<'_>) -> Value {
        let mut object = value.as_object().cloned().unwrap_or_default();
        drop_nulls(&mut object, at);
        Value::Object(object)
    }

    #[test]
    fn nulls_stay_only_where_the_schema_allows_them() {
        let gadget = samples::gadget();
        let cases = [
            ("a scalar", json!({"size": null}), json!({})),
            ("a nullable scalar", json!({"note": null}), json!({"note": null})),
            ("int or string", json!({"port": null}), json!({})),
            ("no type at all", json!({"anything": null}), json!({"anything": null})),
            ("below no type", json!({"anything": {"a": [{"b": null}]}}), json!({"anything": {"a": [{"b": null}]}})),
            ("an object that preserves unknown fields", json!({"values": null}), json!({})),
            ("what it knows", json!({"values": {"known": null}}), json!({"values": {}})),
            ("what it does not know", json!({"values": {"a": null}}), json!({"values": {"a": null}})),
            ("below that", json!({"values": {"a": {"b": null}}}), json!({"values": {"a": {"b": null}}})),
            ("a map", json!({"settings": {"a": null, "b": "c"}}), json!({"settings": {"b": "c"}})),
            ("an element", json!({"routes": [{"host": null}, null]}), json!({"routes": [{}, null]})),
            ("an undeclared field", json!({"none": {"a": null}}), json!({"none": {}})),
        ];
        for (name, spec, expected) in cases {
            assert_eq!(without_nulls(&json!({"spec": spec}), gadget.root()), json!({"spec": expected}), "{name}");
        }
    }

    #[test]
    fn without_a_schema_all_nulls_are_removed() {
        let value = json!({"a": null, "b": {"c": null, "d": [{"e": null}, [{"f": null}]]}});
        assert_eq!(without_nulls(&value, Cursor::unknown()), json!({"b": {"d": [{}, [{}]]}}));
    }
}
