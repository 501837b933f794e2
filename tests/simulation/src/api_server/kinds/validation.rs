//! Checks custom resources against their schema: types, rules, and that the elements of lists are what the lists say.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::api_server::{
    causes::Causes,
    path::Path,
    schema::{Fields, List, Node, Rules, Scalar, Shape},
};

/// Checks a new object.
pub(super) fn check_new(object: &Value, node: &Node, causes: &mut Causes) {
    check(object, None, node, (Path::ROOT, causes));
    check_lists(object, node, Path::ROOT, causes);
}

/// Checks a changed object. What has not changed is not checked.
pub(super) fn check_change(new: &Value, old: &Value, node: &Node, causes: &mut Causes) {
    check(new, Some(old), node, (Path::ROOT, causes));
    let mut before = Causes::default();
    check_lists(old, node, Path::ROOT, &mut before);
    if before.is_empty() {
        check_lists(new, node, Path::ROOT, causes);
    }
}

/// Checks a changed status.
pub(super) fn check_status(new: &Value, old: &Value, node: &Node, causes: &mut Causes) {
    let Some(status) = node.at(&["status"]) else { return };
    if let Some(value) = new.get("status") {
        check(value, old.get("status"), status, (Path::ROOT.field("status"), causes));
    }
    let mut before = Causes::default();
    check_lists(old, node, Path::ROOT, &mut before);
    if before.is_empty() {
        check_lists(new, node, Path::ROOT, causes);
    }
}

/// Checks a value; `old` is what it was, if it is known.
fn check(value: &Value, old: Option<&Value>, node: &Node, (path, causes): (Path<'_>, &mut Causes)) {
    // A value that was wrong before may stay so.
    if old == Some(value) {
        return;
    }
    if value.is_null() && node.nullable {
        return;
    }
    match (&node.shape, value) {
        (Shape::Object(fields), Value::Object(object)) => {
            check_object(object, old, fields, (path, causes));
        }
        (Shape::List { items, .. }, Value::Array(elements)) => {
            for (index, element) in elements.iter().enumerate() {
                let before = old.and_then(|old| old.get(index)).filter(|_| matches!(node.shape, Shape::List { .. }));
                check(element, before, items, (path.index(index), causes));
            }
        }
        (Shape::Scalar(scalar), value) if fits(*scalar, value) => {}
        (Shape::Any, _) => {}
        (shape, value) => causes.wrong_type(path.to_string(), value, type_name(shape)),
    }
    if let Some(rules) = &node.rules {
        check_rules(value, rules, (path, causes));
        if rules.immutable && old.is_some() {
            causes.invalid(path.to_string(), value, "the value is immutable");
        }
    }
}

fn check_object(
    object: &Map<String, Value>,
    old: Option<&Value>,
    fields: &Fields,
    (path, causes): (Path<'_>, &mut Causes),
) {
    for (name, value) in object {
        if path.is_root() && name == "metadata" {
            continue;
        }
        if let Some(node) = fields.get(name) {
            check(value, old.and_then(|old| old.get(name)), node, (path.field(name), causes));
        }
    }
}

fn fits(scalar: Scalar, value: &Value) -> bool {
    match scalar {
        Scalar::Int32 | Scalar::Int64 => {
            value.as_i64().is_some() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        Scalar::Number => value.is_number(),
        Scalar::Boolean => value.is_boolean(),
        Scalar::IntOrString => value.is_string() || value.as_i64().is_some(),
        Scalar::Text | Scalar::Time | Scalar::MicroTime | Scalar::Bytes | Scalar::Quantity => value.is_string(),
    }
}

fn type_name(shape: &Shape) -> &'static str {
    match shape {
        Shape::Object(_) => "object",
        Shape::List { .. } => "array",
        Shape::Scalar(Scalar::Int32 | Scalar::Int64) => "integer",
        Shape::Scalar(Scalar::Number) => "number",
        Shape::Scalar(Scalar::Boolean) => "boolean",
        Shape::Scalar(Scalar::IntOrString) => "integer,string",
        Shape::Scalar(_) | Shape::Any => "string",
    }
}

fn check_rules(value: &Value, rules: &Rules, (path, causes): (Path<'_>, &mut Causes)) {
    if !rules.one_of.is_empty() && !rules.one_of.contains(value) {
        let possible = rules.one_of.iter().map(|one| one.as_str().unwrap_or_default()).collect::<Vec<_>>();
        causes.not_supported(path.to_string(), value, &possible);
    }
    match value {
        Value::Object(object) => {
            for name in rules.required.iter().filter(|name| !object.contains_key(&***name)) {
                causes.required(path.field(name).to_string(), "");
            }
            let count = object.len() as u64;
            if rules.max_properties.is_some_and(|most| count > most) {
                causes.too_many(path.to_string(), object.len(), rules.max_properties.unwrap_or_default());
            }
            if rules.min_properties.is_some_and(|least| count < least) {
                causes.invalid(path.to_string(), value, "should have more properties");
            }
        }
        Value::Array(elements) => {
            let count = elements.len() as u64;
            if rules.max_items.is_some_and(|most| count > most) {
                causes.too_many(path.to_string(), elements.len(), rules.max_items.unwrap_or_default());
            }
            if rules.min_items.is_some_and(|least| count < least) {
                causes.invalid(path.to_string(), value, "should have more items");
            }
        }
        Value::String(text) => {
            let count = text.chars().count() as u64;
            if rules.max_length.is_some_and(|most| count > most) {
                causes.too_long(path.to_string(), rules.max_length.unwrap_or_default());
            }
            if rules.min_length.is_some_and(|least| count < least) {
                causes.invalid(path.to_string(), value, "should be longer");
            }
            if rules.pattern.as_ref().is_some_and(|pattern| !pattern.is_match(text)) {
                causes.invalid(path.to_string(), value, "should match the pattern");
            }
        }
        Value::Number(number) => {
            let number = number.as_f64().unwrap_or_default();
            if rules.maximum.is_some_and(|most| number > most) {
                causes.invalid(path.to_string(), value, "should be less than or equal to the maximum");
            }
            if rules.minimum.is_some_and(|least| number < least) {
                causes.invalid(path.to_string(), value, "should be greater than or equal to the minimum");
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// Checks that no two elements of a list are the same where the list says so.
fn check_lists(value: &Value, node: &Node, path: Path<'_>, causes: &mut Causes) {
    match (&node.shape, value) {
        (Shape::Object(fields), Value::Object(object)) => {
            // Most values have no lists in them.
            for (name, value) in object.iter().filter(|(_, value)| value.is_object() || value.is_array()) {
                let is_metadata = path.is_root() && name == "metadata";
                if let Some(node) = fields.get(name).filter(|_| !is_metadata) {
                    check_lists(value, node, path.field(name), causes);
                }
            }
        }
        (Shape::List { items, list }, Value::Array(elements)) => {
            let mut known = BTreeSet::new();
            for (index, element) in elements.iter().enumerate() {
                let path = path.index(index);
                let key = match list {
                    List::Atomic => None,
                    List::Set => Some(element.to_string()),
                    List::Map(keys) => Some(keys.iter().map(|key| element[&*key.name].to_string()).collect()),
                };
                if key.is_some_and(|key| !known.insert(key)) {
                    causes.duplicate(path.to_string(), element);
                }
                check_lists(element, items, path, causes);
            }
        }
        _ => {}
    }
}
