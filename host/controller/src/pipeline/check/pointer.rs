//! Removes fields by JSON pointer (RFC 6901), for fields that are left to others. Pure.

use pilothouse_engine::is_json_pointer;
use serde_json::Value;

use crate::schema::pointer_keys;

/// A text that is not a JSON pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not a JSON pointer such as /spec/replicas")]
pub struct InvalidPointer;

/// Removes the field at a pointer. A field that does not exist is no error.
///
/// # Errors
/// [`InvalidPointer`] if the text is not a pointer, or if it is the pointer of the whole document.
pub fn remove(value: &mut Value, pointer: &str) -> Result<(), InvalidPointer> {
    let (parent, _) = pointer.rsplit_once('/').filter(|_| is_json_pointer(pointer)).ok_or(InvalidPointer)?;
    let key = pointer_keys(pointer).last().ok_or(InvalidPointer)?;
    match value.pointer_mut(parent) {
        Some(Value::Object(object)) => {
            object.remove(&key);
        }
        Some(Value::Array(items)) => {
            // `Vec::remove` panics behind the end, and the index comes from a plugin.
            if let Some(index) = key.parse().ok().filter(|&index: &usize| index < items.len()) {
                items.remove(index);
            }
        }
        _ => {}
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn removes_exactly_the_field_at_the_pointer() -> Result<(), InvalidPointer> {
        let cases = [
            ("/spec/replicas", json!({"spec": {"image": "a", "a/b": 1, "list": [1, 2]}})),
            ("/spec/a~1b", json!({"spec": {"replicas": 1, "image": "a", "list": [1, 2]}})),
            ("/spec/list/0", json!({"spec": {"replicas": 1, "image": "a", "a/b": 1, "list": [2]}})),
            ("/spec/none/deep", json!({"spec": {"replicas": 1, "image": "a", "a/b": 1, "list": [1, 2]}})),
            ("/spec", json!({})),
        ];
        for (pointer, expected) in cases {
            let mut value = json!({"spec": {"replicas": 1, "image": "a", "a/b": 1, "list": [1, 2]}});
            remove(&mut value, pointer)?;
            assert_eq!(value, expected, "{pointer}");
        }
        for invalid in ["spec/replicas", "", "/", "/data/~2", "/data/~", "/data~/a"] {
            assert!(remove(&mut json!({}), invalid).is_err(), "{invalid}");
        }
        Ok(())
    }
}
