//! Checks that a value has the types of its schema, as server-side apply demands before it merges anything.

use std::collections::BTreeSet;

use serde_json::Value;

use super::items::identify;
use crate::api_server::schema::{Fields, List, Node, Scalar, Shape};

/// Where a value is not what its schema says.
#[derive(Debug, thiserror::Error)]
#[error("{path}: {problem}")]
pub struct TypeError {
    /// The field.
    pub path: String,
    /// What is wrong.
    pub problem: String,
}

/// Checks an applied value. No two elements of a list may have the same keys.
///
/// # Errors
/// [`TypeError`] for the first mistake.
pub fn check_type(value: &Value, node: &Node) -> Result<(), TypeError> {
    match (&node.shape, value) {
        (_, Value::Null) | (Shape::Any, _) => Ok(()),
        (Shape::Object(fields), Value::Object(object)) => {
            object.iter().try_for_each(|(name, value)| check_field(fields, name, value))
        }
        (Shape::Object(_), other) => error("", format!("expected map, got {other}")),
        (Shape::List { items, list }, Value::Array(elements)) => check_items(elements, items, list),
        (Shape::List { .. }, other) => error("", format!("expected list, got {other}")),
        (Shape::Scalar(scalar), value) if fits(*scalar, value) => Ok(()),
        (Shape::Scalar(scalar), value) => error("", format!("expected {scalar:?}, got {value}")),
    }
}

fn check_field(fields: &Fields, name: &str, value: &Value) -> Result<(), TypeError> {
    match fields.get(name) {
        Some(node) => check_type(value, node).map_err(|error| error.below(&format!(".{name}"))),
        None => error(&format!(".{name}"), "field not declared in schema".to_owned()),
    }
}

fn check_items(elements: &[Value], items: &Node, list: &List) -> Result<(), TypeError> {
    let mut known = BTreeSet::new();
    for (index, value) in elements.iter().enumerate() {
        if *list != List::Atomic {
            let element = match identify(list, value) {
                Ok(element) => element,
                Err(problem) => return error("", format!("element {index}: {problem}")),
            };
            let text = element.to_string();
            if !known.insert(element) {
                return error("", format!("duplicate entries for key {text}"));
            }
        }
        check_type(value, items).map_err(|error| error.below(&format!("[{index}]")))?;
    }
    Ok(())
}

fn fits(scalar: Scalar, value: &Value) -> bool {
    match scalar {
        Scalar::Text | Scalar::Time | Scalar::MicroTime | Scalar::Bytes => value.is_string(),
        Scalar::Int32 | Scalar::Int64 | Scalar::Number => value.is_number(),
        Scalar::Boolean => value.is_boolean(),
        Scalar::IntOrString | Scalar::Quantity => value.is_number() || value.is_string() || value.is_boolean(),
    }
}

fn error(path: &str, problem: String) -> Result<(), TypeError> {
    Err(TypeError { path: path.to_owned(), problem })
}

impl TypeError {
    fn below(self, prefix: &str) -> Self {
        Self { path: format!("{prefix}{}", self.path), ..self }
    }
}
