//! Setting fields of an object that is made as JSON. It never sets what the API server would not store.

use serde_json::Value;

/// Sets a field unless the value is null or an empty list or map. The API server does not store such values, so they would
/// look like drift.
pub fn set_unless_empty(object: &mut Value, field: &str, value: Value) {
    let is_empty = match &value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    };
    if !is_empty {
        object[field] = value;
    }
}

/// Removes a field that holds an empty text.
pub fn remove_if_empty(object: &mut Value, field: &str) {
    if let Some(object) = object.as_object_mut().filter(|object| object.get(field).is_some_and(|text| text == "")) {
        object.remove(field);
    }
}
