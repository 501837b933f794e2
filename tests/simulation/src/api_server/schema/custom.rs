//! Builds a schema from the structural schema of a CustomResourceDefinition. Says what of it this server cannot do.

use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

use super::{Fields, List, ListKey, Node, Rules, Scalar, Shape, metadata};

/// A schema that this server cannot use.
#[derive(Debug, thiserror::Error)]
pub enum SchemaError {
    /// A pattern is no regular expression.
    #[error("the pattern of a schema cannot be used: {0}")]
    Pattern(#[from] regex::Error),
    /// A document is not what it should be.
    #[error("{0}")]
    Malformed(String),
}

impl Node {
    /// The schema of a custom resource: `schema.openAPIV3Schema` of one version of its definition.
    ///
    /// # Errors
    /// [`SchemaError`] for a pattern that is none.
    pub fn from_custom(schema: &Value) -> Result<Arc<Self>, SchemaError> {
        let mut node = read(schema, false)?;
        if let Shape::Any = node.shape {
            node.shape = Shape::Object(Fields { others: Some(Arc::new(Self::default())), ..Fields::default() });
        }
        if let Shape::Object(fields) = &mut node.shape {
            metadata::complete(fields);
        }
        Ok(Arc::new(node))
    }
}

/// Reads a schema. A merge knows everything below an object that keeps unknown fields, although only the object itself keeps them.
fn read(schema: &Value, is_free: bool) -> Result<Node, SchemaError> {
    let flag = |name: &str| schema[name] == Value::Bool(true);
    let is_free = is_free || flag("x-kubernetes-preserve-unknown-fields");
    let shape = if flag("x-kubernetes-int-or-string") {
        Shape::Scalar(Scalar::IntOrString)
    } else {
        match schema["type"].as_str() {
            Some("object") => object(schema, is_free)?,
            Some("array") => Shape::List { items: Arc::new(read(&schema["items"], is_free)?), list: list(schema) },
            Some("integer") => Shape::Scalar(if schema["format"] == "int32" { Scalar::Int32 } else { Scalar::Int64 }),
            Some("number") => Shape::Scalar(Scalar::Number),
            Some("boolean") => Shape::Scalar(Scalar::Boolean),
            // A custom resource keeps its times as they are written.
            Some("string") => Shape::Scalar(Scalar::Text),
            _ => Shape::Any,
        }
    };
    Ok(Node {
        shape,
        default: schema.get("default").cloned(),
        nullable: flag("nullable"),
        rules: Some(Box::new(rules(schema)?)).filter(|rules| !rules.is_empty()),
    })
}

fn object(schema: &Value, is_free: bool) -> Result<Shape, SchemaError> {
    let mut fields = Fields { atomic: schema["x-kubernetes-map-type"] == "atomic", ..Fields::default() };
    for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
        fields.named.push((name.as_str().into(), Arc::new(read(schema, is_free)?)));
    }
    fields.sort();
    let others = schema.get("additionalProperties");
    fields.keeps_others = schema["x-kubernetes-preserve-unknown-fields"] == true
        || others.is_some_and(|others| others.is_object() || *others == true);
    fields.others = match others {
        Some(others @ Value::Object(_)) => Some(Arc::new(read(others, is_free)?)),
        Some(Value::Bool(true)) => Some(Arc::new(Node::default())),
        Some(_) => None,
        None => (is_free || fields.named.is_empty()).then(|| Arc::new(Node::default())),
    };
    Ok(Shape::Object(fields))
}

fn list(schema: &Value) -> List {
    match schema["x-kubernetes-list-type"].as_str() {
        Some("set") => List::Set,
        Some("map") => {
            let keys = schema["x-kubernetes-list-map-keys"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let default = |key: &str| schema["items"]["properties"][key].get("default").cloned();
            List::Map(keys.map(|key| ListKey { name: key.into(), default: default(key) }).collect())
        }
        _ => List::Atomic,
    }
}

fn rules(schema: &Value) -> Result<Rules, SchemaError> {
    let number = |name: &str| schema[name].as_f64();
    let count = |name: &str| schema[name].as_u64();
    let rules_in_cel = schema["x-kubernetes-validations"].as_array().into_iter().flatten();
    Ok(Rules {
        required: schema["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .map(Into::into)
            .collect(),
        one_of: schema["enum"].as_array().cloned().unwrap_or_default(),
        minimum: number("minimum"),
        maximum: number("maximum"),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        min_items: count("minItems"),
        max_items: count("maxItems"),
        min_properties: count("minProperties"),
        max_properties: count("maxProperties"),
        pattern: schema["pattern"].as_str().map(Regex::new).transpose()?,
        immutable: rules_in_cel.into_iter().any(|rule| rule["rule"] == "self == oldSelf"),
    })
}
