//! Small steps with which the kinds' functions change and read objects.

use serde_json::{Map, Value, json};

/// An object at a path of fields, made where it is missing; none where something else is.
pub(super) fn object_at<'v>(value: &'v mut Value, path: &[&str]) -> Option<&'v mut Map<String, Value>> {
    let mut object = value.as_object_mut()?;
    for name in path {
        object = object.entry(*name).or_insert_with(|| json!({})).as_object_mut()?;
    }
    Some(object)
}

/// Fills a field in where it is missing.
pub(super) fn default_to(object: &mut Map<String, Value>, name: &str, value: impl Into<Value>) {
    if !object.contains_key(name) {
        object.insert(name.to_owned(), value.into());
    }
}

/// The elements of a list at a path, to be changed.
pub(super) fn elements_at<'v>(value: &'v mut Value, path: &[&str]) -> impl Iterator<Item = &'v mut Map<String, Value>> {
    let list = path.iter().try_fold(value, |value, name| value.get_mut(*name));
    list.and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

/// A value at a path; null if there is none.
pub(super) fn at<'v>(value: &'v Value, path: &[&str]) -> &'v Value {
    static NULL: Value = Value::Null;
    path.iter().try_fold(value, |value, name| value.get(*name)).unwrap_or(&NULL)
}

/// Puts the value of a field of another object into an object, or takes the field away if the other does not have it.
pub(super) fn copy_field(from: &Value, to: &mut Value, name: &str) {
    let Some(to) = to.as_object_mut() else { return };
    match from.get(name) {
        Some(value) => drop(to.insert(name.to_owned(), value.clone())),
        None => drop(to.remove(name)),
    }
}

/// Raises the generation if one of some fields has changed.
pub(super) fn raise_generation(new: &mut Value, old: &Value, fields: &[&[&str]]) {
    if fields.iter().any(|path| at(new, path) != at(old, path)) {
        let generation = at(old, &["metadata", "generation"]).as_i64().unwrap_or_default();
        new["metadata"]["generation"] = (generation + 1).into();
    }
}

/// Gives a new object its first generation and an empty status.
pub(super) fn begin(new: &mut Value, status: Value) {
    new["metadata"]["generation"] = 1.into();
    new["status"] = status;
}
