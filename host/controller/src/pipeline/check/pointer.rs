//! JSON pointers (RFC 6901) into a child: removing the fields that are left to others. Pure.

use serde_json::Value;

/// A text that is not a JSON pointer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("it is not a JSON pointer such as /spec/replicas")]
pub struct NoPointer;

/// Removes the field that a pointer names; a field that is not there is no error.
///
/// # Errors
/// [`NoPointer`].
pub fn remove(value: &mut Value, pointer: &str) -> Result<(), NoPointer> {
    let (parent, last) =
        pointer.rsplit_once('/').filter(|(parent, _)| parent.is_empty() || parent.starts_with('/')).ok_or(NoPointer)?;
    let key = last.replace("~1", "/").replace("~0", "~");
    match value.pointer_mut(parent) {
        Some(Value::Object(object)) => {
            object.remove(&key);
        }
        Some(Value::Array(items)) => {
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
    fn removes_what_is_there_and_nothing_else() -> Result<(), NoPointer> {
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
        assert!(remove(&mut json!({}), "spec/replicas").is_err());
        assert!(remove(&mut json!({}), "").is_err());
        Ok(())
    }
}
