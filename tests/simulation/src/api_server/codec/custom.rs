//! Reads a custom resource: drops what its schema does not declare, and null where it cannot be, and fills in the schema's defaults.

use serde_json::{Map, Value};

use super::{error::DecodeError, typed};
use crate::api_server::{
    path::Path,
    schema::{Fields, Node, Shape},
};

/// Reads an object.
pub(super) fn decode(value: Value, node: &Node, unknown: &mut Vec<String>) -> Result<Value, DecodeError> {
    let Value::Object(mut object) = value else { return Err(DecodeError::new(Path::ROOT, &value, "object")) };
    let metadata = object.remove("metadata");
    let mut value = Value::Object(object);
    prune(&mut value, node, Path::ROOT, unknown);
    if let (Some(metadata), Some(node)) = (metadata, node.at(&["metadata"]))
        && let Some(metadata) = typed::decode(metadata, node, unknown)?
    {
        value["metadata"] = metadata;
    }
    fill_in(&mut value, node);
    Ok(value)
}

/// Reads the result of an apply: only the metadata is normalised, and defaults are filled in.
pub(super) fn decode_applied(mut value: Value, node: &Node) -> Result<Value, DecodeError> {
    if let Some(schema) = node.at(&["metadata"])
        && let Some(metadata) = typed::decode(value["metadata"].take(), schema, &mut Vec::new())?
    {
        value["metadata"] = metadata;
    }
    fill_in(&mut value, node);
    Ok(value)
}

/// Drops what the schema does not know from an object that was read before.
pub(super) fn prune_all(value: &mut Value, node: &Node) {
    let Shape::Object(fields) = &node.shape else { return };
    for (name, value) in value.as_object_mut().into_iter().flatten().filter(|(name, _)| *name != "metadata") {
        if let Some(node) = fields.get(name) {
            prune(value, node, Path::ROOT.field(name), &mut Vec::new());
        }
    }
}

/// The same, and drops whole fields of the object that the schema does not know.
pub(super) fn prune_whole(value: &mut Value, node: &Node) {
    let metadata = value["metadata"].take();
    prune(value, node, Path::ROOT, &mut Vec::new());
    value["metadata"] = metadata;
}

fn prune(value: &mut Value, node: &Node, path: Path<'_>, unknown: &mut Vec<String>) {
    match (&node.shape, value) {
        (Shape::Object(fields), Value::Object(object)) => prune_object(object, fields, path, unknown),
        (Shape::List { items, .. }, Value::Array(elements)) => {
            for (index, element) in elements.iter_mut().enumerate() {
                prune(element, items, path.index(index), unknown);
            }
        }
        _ => {}
    }
}

fn prune_object(object: &mut Map<String, Value>, fields: &Fields, path: Path<'_>, unknown: &mut Vec<String>) {
    object.retain(|name, value| {
        let node = fields.declared(name).map(|(_, node)| node);
        let node = match node.or(fields.others.as_ref().filter(|_| fields.keeps_others)) {
            Some(node) => node,
            None => {
                unknown.push(path.field(name).to_string());
                return false;
            }
        };
        let is_free = matches!(node.shape, Shape::Any);
        if value.is_null() && !node.nullable && node.default.is_none() && !is_free {
            return false;
        }
        prune(value, node, path.field(name), unknown);
        true
    });
}

fn fill_in(value: &mut Value, node: &Node) {
    match (&node.shape, value) {
        (Shape::Object(fields), Value::Object(object)) => {
            for (name, node) in &fields.named {
                let Some(default) = &node.default else { continue };
                if **name == *"metadata" {
                    continue;
                }
                let is_missing = object.get(&**name).is_none_or(|value| value.is_null() && !node.nullable);
                if is_missing {
                    object.insert(name.to_string(), default.clone());
                }
            }
            for (name, value) in object {
                if let Some(node) = fields.get(name).filter(|_| name != "metadata") {
                    fill_in(value, node);
                }
            }
        }
        (Shape::List { items, .. }, Value::Array(elements)) => {
            elements.iter_mut().for_each(|element| fill_in(element, items));
        }
        _ => {}
    }
}
