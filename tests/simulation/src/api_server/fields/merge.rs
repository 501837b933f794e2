//! Merges an applied object into the live one: what both have takes the applied value, nothing is removed.

use serde_json::{Map, Value};

use super::{Element, items::identify};
use crate::api_server::schema::{Fields, List, Node, Shape};

/// Merges `applied` into `live`.
pub fn merge(live: &Value, applied: &Value, node: &Node) -> Value {
    both(Some(live), Some(applied), node).unwrap_or_default()
}

/// The merged value; none where nothing is left.
fn both(live: Option<&Value>, applied: Option<&Value>, node: &Node) -> Option<Value> {
    let leaf = || applied.or(live).cloned();
    match &node.shape {
        Shape::Scalar(_) => leaf(),
        Shape::Object(fields) if fields.atomic => leaf(),
        Shape::Object(fields) => objects(live, applied, Some(fields)),
        Shape::List { list: List::Atomic, .. } => leaf(),
        Shape::List { items, list } => lists(live, applied, items, list),
        Shape::Any => {
            let is_map = |value: Option<&Value>| value.is_none_or(|value| value.is_object() || value.is_null());
            let is_any_map = [live, applied].into_iter().flatten().any(Value::is_object);
            if is_any_map && is_map(live) && is_map(applied) { objects(live, applied, None) } else { leaf() }
        }
    }
}

fn objects(live: Option<&Value>, applied: Option<&Value>, fields: Option<&Fields>) -> Option<Value> {
    let leaf = || applied.or(live).cloned();
    let (live_fields, applied_fields) = (live.and_then(Value::as_object), applied.and_then(Value::as_object));
    let is_empty = |object: Option<&Map<String, Value>>| object.is_none_or(Map::is_empty);
    match (is_empty(live_fields), is_empty(applied_fields)) {
        // Nothing to merge. What is below keeps its empty objects as they are.
        (true, _) => return leaf(),
        (false, true) => return live.cloned(),
        (false, false) => {}
    }
    let free = Node::default();
    let node = |name: &str| fields.and_then(|fields| fields.get(name)).map_or(&free, |node| &**node);
    let is_applied = |name: &str| applied_fields.is_some_and(|applied| applied.contains_key(name));
    let left = live_fields.into_iter().flatten().filter(|(name, _)| !is_applied(name));
    let mut out: Map<String, Value> = left.map(|(name, value)| (name.clone(), value.clone())).collect();
    for (name, value) in applied_fields.into_iter().flatten() {
        let live = live_fields.and_then(|live| live.get(name));
        out.extend(both(live, Some(value), node(name)).map(|merged| (name.clone(), merged)));
    }
    Some(Value::Object(out)).filter(|out| out.as_object().is_some_and(|out| !out.is_empty()))
}

fn lists(live: Option<&Value>, applied: Option<&Value>, items: &Node, list: &List) -> Option<Value> {
    let leaf = || applied.or(live).cloned();
    let none = Vec::new();
    let elements = |value: Option<&Value>| -> Vec<Value> { value.and_then(Value::as_array).unwrap_or(&none).clone() };
    let (left, right) = (elements(live), elements(applied));
    match (left.is_empty(), right.is_empty()) {
        (true, _) => return leaf(),
        (false, true) => return live.cloned(),
        (false, false) => {}
    }
    let identified = |values: &[Value]| -> Vec<Element> {
        values.iter().map(|value| identify(list, value).unwrap_or(Element::Value(Value::Null))).collect()
    };
    let (left_ids, right_ids) = (identified(&left), identified(&right));
    let position = |ids: &[Element], element: &Element| ids.iter().position(|known| known == element);
    // An element that the live list has twice is not merged with.
    let single = |ids: &[Element], element: &Element| ids.iter().filter(|known| *known == element).count() == 1;
    let mut shared = right_ids.iter().filter(|element| left_ids.contains(element)).peekable();
    let mut merged: Vec<&Element> = Vec::new();
    let mut out = Vec::with_capacity(left.len().max(right.len()));
    let (mut i, mut j) = (0, 0);
    let join = |element: &Element, j: usize| {
        let old = position(&left_ids, element).filter(|_| single(&left_ids, element)).and_then(|index| left.get(index));
        both(old, right.get(j), items)
    };
    while i < left.len() || j < right.len() {
        if let (Some(old), Some(new)) = (left_ids.get(i), right_ids.get(j)) {
            if old == new {
                merged.push(old);
                out.extend(join(new, j));
                i += 1;
                j += 1;
                shared.next();
                continue;
            }
            if right_ids.contains(old) && shared.peek().is_some_and(|next| *next != old) {
                // Shared, but not the one whose turn it is.
                i += 1;
                continue;
            }
        }
        if let Some(old) = left_ids.get(i) {
            if !right_ids.contains(old) {
                out.extend(both(left.get(i), None, items));
                i += 1;
                continue;
            }
            if merged.contains(&old) {
                i += 1;
            }
        }
        if let Some(new) = right_ids.get(j) {
            merged.push(new);
            out.extend(join(new, j));
            j += 1;
            if shared.peek() == Some(&new) {
                shared.next();
            }
        }
    }
    Some(Value::Array(out))
}
