//! A sample object of a kind, from its schema: what must be there, and what the API server writes where it is missing. Rules in CEL
//! (`x-kubernetes-validations`) are not looked at; what the sample does not satisfy otherwise is told.

mod number;
mod pattern;
mod schema;
mod text;

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use self::schema::Judge;
use crate::definition::is_free;

/// In the place of a text that nothing could be found for.
pub(crate) const MARKER: &str = "REPLACE-ME";

/// As many fields that need not be there are shown in a spec that would be empty.
const SHOWN: usize = 3;

/// No spec is nested more deeply: in a CRD, no schema has itself in it.
const DEEPEST: usize = 64;

/// A sample.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    /// The value.
    pub(crate) value: Value,
    /// What does not fit the schema: where, and why.
    pub(crate) unmet: Vec<String>,
    /// Whether the schema has rules that nobody has looked at.
    pub(crate) has_rules: bool,
}

/// A sample of a spec.
pub(crate) fn of_spec(spec: &Value) -> Sample {
    let judge = Judge::new(spec);
    let mut value = made(spec, 0);
    if value.as_object().is_some_and(Map::is_empty) {
        value = shown(spec).unwrap_or(value);
    }
    let unmet = judge.unmet(&value, "spec");
    Sample { value, unmet, has_rules: has_rules(spec) }
}

/// Some fields of a spec that need not be there, simple ones before others.
fn shown(spec: &Value) -> Option<Value> {
    let properties = spec["properties"].as_object()?;
    let is_simple = |schema: &Value| matches!(schema["type"].as_str(), Some("string" | "integer" | "boolean"));
    let (simple, others): (Vec<_>, Vec<_>) = properties.iter().partition(|(_, schema)| is_simple(schema));
    let fitting = |schemas: Vec<(&String, &Value)>, most: usize| -> Map<String, Value> {
        let made = schemas.into_iter().map(|(name, schema)| (name, made(schema, 1), schema));
        let fitting = made.filter(|(_, value, schema)| Judge::new(schema).is_met(value));
        fitting.take(most).map(|(name, value, _)| (name.clone(), value)).collect()
    };
    let some = fitting(simple, SHOWN);
    let value = Value::Object(if some.is_empty() { fitting(others, 1) } else { some });
    Judge::new(spec).is_met(&value).then_some(value)
}

/// A value for a schema. It may fall short of one that asks for a lot; whoever asked judges.
fn made(schema: &Value, depth: usize) -> Value {
    if depth > DEEPEST {
        return Value::Null;
    }
    let simple = simple(schema, depth);
    let is_branched = ["anyOf", "oneOf", "allOf", "not"].iter().any(|word| schema.get(word).is_some());
    if !is_branched {
        return simple;
    }
    let judge = Judge::new(schema);
    if judge.is_met(&simple) {
        return simple;
    }
    // A branch says what must be there besides; the types are in the schema itself.
    let candidates = branches(schema).into_iter().map(|branch| made(&merged(schema, branch), depth + 1));
    candidates.into_iter().find(|value| judge.is_met(value)).unwrap_or(simple)
}

fn branches(schema: &Value) -> Vec<&Value> {
    ["oneOf", "anyOf", "allOf"].iter().filter_map(|word| schema[*word].as_array()).flatten().collect()
}

/// A schema with what a branch of it says, and without the branches.
fn merged(schema: &Value, branch: &Value) -> Value {
    let (Some(all), Some(more)) = (schema.as_object(), branch.as_object()) else { return schema.clone() };
    let mut all = all.clone();
    ["oneOf", "anyOf", "allOf", "not"].iter().for_each(|word| drop(all.remove(*word)));
    for (word, value) in more {
        match (word.as_str(), all.get_mut(word), value) {
            ("required", Some(Value::Array(known)), Value::Array(added)) => known.extend(added.iter().cloned()),
            ("properties", Some(Value::Object(known)), Value::Object(added)) => {
                for (name, schema) in added {
                    let both = known.get(name).map_or_else(|| schema.clone(), |known| merged(known, schema));
                    known.insert(name.clone(), both);
                }
            }
            _ => drop(all.insert(word.clone(), value.clone())),
        }
    }
    Value::Object(all)
}

fn simple(schema: &Value, depth: usize) -> Value {
    if let Some(given) = ["default", "example"].iter().find_map(|word| schema.get(*word)).filter(|it| !it.is_null()) {
        return completed(given.clone(), schema, depth);
    }
    if let Some(values) = schema["enum"].as_array() {
        let said = values.iter().find(|value| !value.is_null() && **value != "");
        return said.or(values.first()).cloned().unwrap_or_default();
    }
    if schema["x-kubernetes-int-or-string"] == true || schema["format"] == "int-or-string" {
        return number::whole(schema);
    }
    match schema["type"].as_str() {
        Some("string") => Value::String(text::of(schema)),
        Some("integer") => number::whole(schema),
        Some("number") => number::any(schema),
        Some("boolean") => Value::Bool(false),
        Some("array") => list(schema, depth),
        _ => object(schema, depth),
    }
}

/// A default is written before those of the fields in it.
fn completed(given: Value, schema: &Value, depth: usize) -> Value {
    let Value::Object(mut fields) = given else { return given };
    for (name, value) in needed(schema) {
        if !fields.contains_key(name) {
            fields.insert(name.clone(), made(value, depth + 1));
        }
    }
    Value::Object(fields)
}

/// The fields that must be there, and those that the API server writes.
fn needed(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let required: BTreeSet<_> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.filter(move |(name, value)| required.contains(name.as_str()) || value.get("default").is_some())
}

fn object(schema: &Value, depth: usize) -> Value {
    let mut fields: Map<String, Value> =
        needed(schema).map(|(name, value)| (name.clone(), made(value, depth + 1))).collect();
    if schema["x-kubernetes-embedded-resource"] == true {
        let resource = serde_json::json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "example"}});
        return completed(resource, schema, depth);
    }
    let least = schema["minProperties"].as_u64().unwrap_or_default();
    let lacking = |fields: &Map<String, Value>| (fields.len() as u64) < least;
    for (name, value) in schema["properties"].as_object().into_iter().flatten() {
        if lacking(&fields) && !fields.contains_key(name) {
            fields.insert(name.clone(), made(value, depth + 1));
        }
    }
    let of_map = &schema["additionalProperties"];
    let mut number = 1;
    while lacking(&fields) && (of_map.is_object() || is_free(schema)) && number <= least {
        fields.insert(format!("key{number}"), made(of_map, depth + 1));
        number += 1;
    }
    Value::Object(fields)
}

/// A list with one element, or with as many as there must be, each another one.
fn list(schema: &Value, depth: usize) -> Value {
    let most = schema["maxItems"].as_u64().unwrap_or(u64::MAX);
    let length = schema["minItems"].as_u64().unwrap_or(1).max(1).min(most).min(100);
    let first = made(&schema["items"], depth + 1);
    let mut elements = Vec::new();
    let judge = Judge::new(&schema["items"]);
    for number in 0..length {
        let listed = usize::try_from(number).ok().and_then(|place| schema["items"]["enum"].get(place)).cloned();
        let others = [another(&first, number)].into_iter().chain(listed);
        let other = others.into_iter().find(|other| number > 0 && judge.is_met(other));
        elements.push(other.unwrap_or_else(|| first.clone()));
    }
    Value::Array(elements)
}

/// Like a value, and different from it.
fn another(value: &Value, number: u64) -> Value {
    match value {
        Value::String(text) => Value::String(format!("{text}{number}")),
        Value::Number(known) => known.as_u64().map_or_else(|| value.clone(), |known| (known + number).into()),
        Value::Object(fields) => {
            let of = |(name, value): (&String, &Value)| {
                let changes = value.is_string() || value.is_number();
                (name.clone(), if changes { another(value, number) } else { value.clone() })
            };
            Value::Object(fields.iter().map(of).collect())
        }
        other => other.clone(),
    }
}

/// Whether a schema has rules in CEL.
fn has_rules(schema: &Value) -> bool {
    match schema {
        Value::Object(words) => words.contains_key("x-kubernetes-validations") || words.values().any(has_rules),
        Value::Array(schemas) => schemas.iter().any(has_rules),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
