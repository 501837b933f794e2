//! Reads bodies as the real server does: built-in kinds through their Go types (`typed.rs`), custom resources through their schema
//! (`custom.rs`). What is unknown is dropped, what is normalised is normalised. Fills in no defaults that are a kind's own.

mod custom;
mod error;
mod quantity;
mod typed;

use serde_json::{Map, Value};

pub use self::{error::DecodeError, quantity::compare_quantities};
use super::{kinds::Kind, schema::Node};

/// What became of a body.
#[derive(Debug)]
pub struct Decoded {
    /// The object.
    pub value: Value,
    /// The fields that were dropped because nobody knows them.
    pub unknown: Vec<String>,
}

/// Reads an object of a kind.
///
/// # Errors
/// [`DecodeError`] for a value of a wrong type.
pub fn decode(value: Value, kind: &Kind) -> Result<Decoded, DecodeError> {
    let mut unknown = Vec::new();
    let mut value = if kind.is_custom() {
        custom::decode(value, &kind.schema, &mut unknown)?
    } else {
        let decoded = typed::decode(value, &kind.schema, &mut unknown)?;
        decoded.unwrap_or_else(|| Value::Object(Map::new()))
    };
    (kind.strategy.default)(&mut value);
    Ok(Decoded { value, unknown })
}

/// An object as it is kept and read back: an empty list of a built-in kind is none, and a custom resource has nothing that its schema
/// does not know.
pub fn as_kept(mut value: Value, kind: &Kind) -> Value {
    if kind.is_custom() {
        custom::prune_all(&mut value, &kind.schema);
    } else if !matches!(&*kind.names.kind, "CustomResourceDefinition") {
        drop_empty_lists(&mut value);
    }
    value
}

/// A custom resource that is kept in another version, as it is read in this one: without what this version does not know. The defaults of
/// this version are those of what is written in it.
pub fn as_read(mut value: Value, kind: &Kind) -> Value {
    custom::prune_whole(&mut value, &kind.schema);
    value
}

fn drop_empty_lists(value: &mut Value) {
    match value {
        Value::Array(list) if list.is_empty() => *value = Value::Null,
        Value::Array(list) => list.iter_mut().for_each(drop_empty_lists),
        Value::Object(object) => object.values_mut().for_each(drop_empty_lists),
        _ => {}
    }
}

/// Reads the result of an apply, which the server does not take through text once more: a custom resource keeps null.
///
/// # Errors
/// [`DecodeError`] for a value of a wrong type.
pub fn decode_applied(value: Value, kind: &Kind) -> Result<Value, DecodeError> {
    if kind.is_custom() {
        custom::decode_applied(value, &kind.schema)
    } else {
        decode(value, kind).map(|decoded| decoded.value)
    }
}

/// The object of a built-in kind of which nothing is said.
pub fn empty_object(schema: &Node) -> Value {
    let object = typed::decode(Value::Object(Map::new()), schema, &mut Vec::new());
    object.ok().flatten().unwrap_or_default()
}
