//! The set of the fields that an object has.

use serde_json::Value;

use super::{Element, Set, items::identify};
use crate::api_server::schema::{Fields, List, Node, Shape};

/// What a value is, by its schema.
enum Walk<'v> {
    /// One field, whatever is below it.
    Leaf,
    /// Nothing: an empty list or null where fields would be.
    Nothing,
    Object(&'v serde_json::Map<String, Value>, Option<&'v Fields>),
    List(&'v [Value], &'v Node, &'v List),
}

/// The fields of an object. Those of an object with elements of the same key are told once for all of them.
pub fn set_of(value: &Value, node: &Node) -> Set {
    let mut set = Set::default();
    match walk(value, node) {
        // The whole object is not a field of anything.
        Walk::Leaf | Walk::Nothing => {}
        Walk::Object(object, fields) => {
            for (name, value) in object {
                let declared = fields.and_then(|fields| fields.declared(name));
                let element = Element::Field(declared.map_or_else(|| name.as_str().into(), |(name, _)| name.clone()));
                let free = Node::default();
                let node = fields.and_then(|fields| fields.get(name)).map_or(&free, |node| &**node);
                let is_empty = value.is_null() || value.as_object().is_some_and(serde_json::Map::is_empty);
                add(&mut set, element, value, node, is_empty || declared.is_none());
            }
        }
        Walk::List(elements, items, list) => {
            let identified: Vec<_> =
                elements.iter().filter_map(|item| Some((identify(list, item).ok()?, item))).collect();
            for (element, item) in &identified {
                if identified.iter().filter(|(other, _)| other == element).count() > 1 {
                    set.insert(element.clone());
                } else {
                    add(&mut set, element.clone(), item, items, true);
                }
            }
        }
    }
    set
}

fn add(set: &mut Set, element: Element, value: &Value, node: &Node, is_member: bool) {
    if is_member || matches!(walk(value, node), Walk::Leaf) {
        set.insert(element.clone());
    }
    set.insert_below(element, set_of(value, node));
}

fn walk<'v>(value: &'v Value, node: &'v Node) -> Walk<'v> {
    match (&node.shape, value) {
        (Shape::Scalar(_), _) => Walk::Leaf,
        (Shape::Object(fields), _) if fields.atomic => Walk::Leaf,
        (Shape::Object(fields), Value::Object(object)) => Walk::Object(object, Some(fields)),
        (Shape::List { list: List::Atomic, .. }, _) => Walk::Leaf,
        (Shape::List { items, list }, Value::Array(elements)) => Walk::List(elements, items, list),
        (Shape::Any, Value::Object(object)) => Walk::Object(object, None),
        (Shape::Any, Value::Null) | (Shape::Object(_) | Shape::List { .. }, _) => Walk::Nothing,
        (Shape::Any, _) => Walk::Leaf,
    }
}
