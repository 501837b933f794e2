//! JSON patches, applied to any value as a real server does: with its words for what cannot be carried out.

use serde_json::Value;
use thiserror::Error;

/// Why a step of a JSON patch cannot be carried out, in the words of a real server.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum PatchError {
    #[error("a step has no {0}")]
    Incomplete(&'static str),
    #[error("{step} operation does not apply: doc is missing path: {path}: missing value")]
    Missing { step: &'static str, path: String },
    #[error("testing value {0} failed: test failed")]
    Differs(String),
    #[error("Unexpected kind: {0}")]
    Unknown(String),
}

/// Carries out the steps of a JSON patch.
///
/// # Errors
/// What is wrong with the first step that cannot be carried out.
pub(super) fn apply_steps(target: &mut Value, steps: &[Value]) -> Result<(), PatchError> {
    steps.iter().try_for_each(|step| apply_step(target, step))
}

fn apply_step(target: &mut Value, step: &Value) -> Result<(), PatchError> {
    let text = |name| step[name].as_str().ok_or(PatchError::Incomplete(name));
    let path = text("path")?;
    match text("op")? {
        "add" => add(target, path, step["value"].clone()),
        "remove" => remove(target, path).map(drop),
        // The real server takes a field that is missing for null, so it can be replaced.
        "replace" => match parent(target, path) {
            Some((Value::Object(object), name)) => {
                object.insert(name, step["value"].clone());
                Ok(())
            }
            _ => {
                let found = target.pointer_mut(path).ok_or_else(|| missing("replace", path))?;
                *found = step["value"].clone();
                Ok(())
            }
        },
        "move" => {
            let value = remove(target, text("from")?)?;
            add(target, path, value)
        }
        "copy" => {
            let value = target.pointer(text("from")?).cloned().ok_or_else(|| missing("copy", path))?;
            add(target, path, value)
        }
        "test" => {
            let found = target.pointer(path).unwrap_or(&Value::Null);
            if *found == step["value"] { Ok(()) } else { Err(PatchError::Differs(path.to_owned())) }
        }
        other => Err(PatchError::Unknown(other.to_owned())),
    }
}

fn missing(step: &'static str, path: &str) -> PatchError {
    PatchError::Missing { step, path: path.to_owned() }
}

fn parent<'v>(target: &'v mut Value, path: &str) -> Option<(&'v mut Value, String)> {
    let (parent, name) = path.rsplit_once('/')?;
    let name = name.replace("~1", "/").replace("~0", "~");
    target.pointer_mut(parent).map(|parent| (parent, name))
}

fn add(target: &mut Value, path: &str, value: Value) -> Result<(), PatchError> {
    if path.is_empty() {
        *target = value;
        return Ok(());
    }
    match parent(target, path) {
        Some((Value::Object(object), name)) => {
            object.insert(name, value);
            Ok(())
        }
        Some((Value::Array(elements), name)) => {
            let index = if name == "-" { Some(elements.len()) } else { name.parse().ok() };
            let index = index.filter(|index| *index <= elements.len()).ok_or_else(|| missing("add", path))?;
            elements.insert(index, value);
            Ok(())
        }
        _ => Err(missing("add", path)),
    }
}

fn remove(target: &mut Value, path: &str) -> Result<Value, PatchError> {
    match parent(target, path) {
        Some((Value::Object(object), name)) => object.remove(&name).ok_or_else(|| missing("remove", path)),
        Some((Value::Array(elements), name)) => {
            let index = name.parse().ok().filter(|index: &usize| *index < elements.len());
            Ok(elements.remove(index.ok_or_else(|| missing("remove", path))?))
        }
        _ => Err(missing("remove", path)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_steps_of_a_patch_are_carried_out_in_order() {
        let mut target = json!({"a": [1, 2], "b": {"c/d": 1}});
        let steps = json!([
            {"op": "test", "path": "/a/0", "value": 1},
            {"op": "add", "path": "/a/-", "value": 3},
            {"op": "remove", "path": "/a/0"},
            {"op": "move", "from": "/b/c~1d", "path": "/e"},
        ]);
        assert_eq!(apply_steps(&mut target, steps.as_array().map(Vec::as_slice).unwrap_or_default()), Ok(()));
        assert_eq!(target, json!({"a": [2, 3], "b": {}, "e": 1}));
        assert!(apply_steps(&mut target, &[json!({"op": "remove", "path": "/x"})]).is_err());
    }
}
