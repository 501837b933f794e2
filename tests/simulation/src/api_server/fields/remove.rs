//! Removes fields from an object.

use serde_json::Value;

use super::{Element, Set, items::identify};
use crate::api_server::schema::{List, Node, Shape};

/// Removes the fields of a set, each with all that is below it.
pub fn remove(value: &mut Value, fields: &Set, node: &Node) {
    walk(value, fields, node);
}

/// Removes below a value. A list or an object of which nothing is left becomes null, as does an atomic one, whose parts nobody can
/// remove.
fn walk(value: &mut Value, fields: &Set, node: &Node) {
    match (&node.shape, &mut *value) {
        (Shape::Scalar(_), _) => {}
        (Shape::Object(known), Value::Object(object)) if !known.atomic => {
            object.retain(|name, value| keep(&Element::Field(name.as_str().into()), value, fields, known.get(name)));
            if object.is_empty() {
                *value = Value::Null;
            }
        }
        (Shape::List { items, list }, Value::Array(elements)) if *list != List::Atomic => {
            elements.retain_mut(|item| match identify(list, item) {
                Ok(element) => keep(&element, item, fields, Some(items)),
                Err(_) => true,
            });
            if elements.is_empty() {
                *value = Value::Null;
            }
        }
        (Shape::Any, Value::Object(object)) => {
            object.retain(|name, value| keep(&Element::Field(name.as_str().into()), value, fields, None));
            if object.is_empty() {
                *value = Value::Null;
            }
        }
        (Shape::Any, Value::String(_) | Value::Number(_) | Value::Bool(_)) => {}
        _ => *value = Value::Null,
    }
}

fn keep(element: &Element, value: &mut Value, fields: &Set, node: Option<&std::sync::Arc<Node>>) -> bool {
    if fields.has(element) {
        return false;
    }
    if let Some(below) = fields.below(element) {
        let free = Node::default();
        walk(value, below, node.map_or(&free, |node| &**node));
    }
    true
}
