//! Samples of schemas: chosen ones, those of real CRDs, and random ones.

use fastrand::Rng;
use serde_json::json;

use super::*;
use crate::definition::tests::{REAL, real};

fn spec(schema: &Value) -> (Value, Vec<String>) {
    let Sample { value, unmet, .. } = of_spec(schema);
    (value, unmet)
}

#[test]
fn a_sample_has_what_must_be_there_and_what_is_written_where_it_is_missing() {
    for (schema, expected) in [
        (
            json!({"type": "object", "required": ["name", "mode", "at"], "properties": {
                "name": {"type": "string"}, "mode": {"type": "string", "enum": ["", "Fast"]}, "at": {"type": "string", "format": "date-time"},
                "port": {"type": "integer", "default": 80}, "other": {"type": "boolean"},
            }}),
            json!({"name": "example", "mode": "Fast", "at": "2026-01-01T00:00:00Z", "port": 80}),
        ),
        // A default of an object, and the defaults in it.
        (
            json!({"type": "object", "properties": {"tls": {"type": "object", "default": {"on": true}, "properties": {
                "on": {"type": "boolean"}, "depth": {"type": "integer", "default": 3},
            }}}}),
            json!({"tls": {"on": true, "depth": 3}}),
        ),
        // Nothing must be there: some of it is shown.
        (
            json!({"type": "object", "properties": {"a": {"type": "object"}, "b": {"type": "integer"}, "c": {"type": "string"}}}),
            json!({"b": 1, "c": "example"}),
        ),
        (
            json!({"type": "object", "properties": {"a": {"type": "array", "items": {"type": "string"}}}}),
            json!({"a": ["example"]}),
        ),
        // A branch says what else must be there.
        (
            json!({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "string"}},
                "oneOf": [{"required": ["b"]}, {"required": ["a"]}]}),
            json!({"b": "example"}),
        ),
        (
            json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string"}},
                "anyOf": [{"properties": {"a": {"enum": ["x"]}}}, {"properties": {"a": {"enum": ["y"]}}}]}),
            json!({"a": "x"}),
        ),
        (
            json!({"type": "object", "required": ["l", "m"], "properties": {
                "l": {"type": "array", "minItems": 2, "uniqueItems": true, "items": {"type": "string"}},
                "m": {"type": "object", "minProperties": 1, "additionalProperties": {"type": "integer"}},
            }}),
            json!({"l": ["example", "example1"], "m": {"key1": 1}}),
        ),
        (json!({}), json!({})),
    ] {
        assert_eq!(spec(&schema), (expected, Vec::new()), "{schema}");
    }
}

#[test]
fn what_cannot_be_made_is_marked_and_told() {
    let schema = json!({"type": "object", "required": ["a"], "properties": {"a": {"type": "string", "pattern": "^(?!x)y$", "minLength": 9}}});
    let (value, unmet) = spec(&schema);
    assert_eq!(value, json!({"a": MARKER}));
    assert!(unmet.iter().any(|what| what.starts_with("spec: its schema cannot be read: ")), "{unmet:?}");
}

#[test]
fn real_kinds_have_samples_that_fit() -> Result<(), Box<dyn std::error::Error>> {
    for (file, kind, _) in REAL {
        let (value, unmet) = spec(&real(file)?.spec());
        assert_eq!(unmet, Vec::<String>::new(), "{kind}: {value}");
        assert!(value.as_object().is_some_and(|fields| !fields.is_empty()), "{kind}");
    }
    Ok(())
}

/// What a random schema asks for can be had: bounds are in their order, patterns are of the kind that people write.
#[test]
fn random_schemas_have_samples_that_fit() {
    for seed in 0..2000 {
        let mut rng = Rng::with_seed(seed);
        let schema = json!({"type": "object", "required": ["f0"], "properties": {"f0": schema(&mut rng, 3), "f1": schema(&mut rng, 2)}});
        let (value, unmet) = spec(&schema);
        assert_eq!(unmet, Vec::<String>::new(), "seed {seed}: {schema} {value}");
    }
}

fn schema(rng: &mut Rng, depth: u32) -> Value {
    let mut made = match rng.u32(0..if depth == 0 { 6 } else { 9 }) {
        0 => text(rng),
        1 => number(rng, "integer"),
        2 => number(rng, "number"),
        3 => json!({"type": "boolean"}),
        4 => json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]}),
        5 => json!({"type": "string", "enum": ["", "One", "two"]}),
        6 => json!({"type": "array", "minItems": rng.u32(0..4), "items": schema(rng, depth - 1)}),
        7 => json!({"type": "object", "minProperties": rng.u32(0..3), "additionalProperties": schema(rng, depth - 1)}),
        _ => object(rng, depth - 1),
    };
    if rng.u32(0..5) == 0 {
        made["nullable"] = true.into();
    }
    made
}

fn object(rng: &mut Rng, depth: u32) -> Value {
    let names: Vec<_> = (0..rng.u32(1..5)).map(|number| format!("f{number}")).collect();
    let properties: Map<_, _> = names.iter().map(|name| (name.clone(), schema(rng, depth))).collect();
    let mut made = json!({"type": "object", "properties": properties});
    let required: Vec<_> = names.iter().filter(|_| rng.bool()).cloned().collect();
    if !required.is_empty() {
        made["required"] = json!(required);
    }
    if rng.u32(0..3) == 0 {
        let branches: Vec<_> = names.iter().map(|name| json!({"required": [name]})).collect();
        made["anyOf"] = json!(branches);
    }
    made
}

fn text(rng: &mut Rng) -> Value {
    let patterns = [
        r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$",
        r"^([0-9]{1,5}(h|m|s|ms)){1,4}$",
        r"^[A-Z]{3}_[0-9]{4}$",
        r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$",
        r"^sha256:[a-f0-9]{64}$",
        r"^arn:aws:iam::\d{12}:role/.+$",
    ];
    match rng.u32(0..3) {
        0 => json!({"type": "string", "pattern": patterns[rng.usize(0..patterns.len())]}),
        1 => {
            let least = rng.u32(0..40);
            json!({"type": "string", "minLength": least, "maxLength": least + rng.u32(1..40)})
        }
        _ => json!({"type": "string"}),
    }
}

fn number(rng: &mut Rng, of: &str) -> Value {
    let least = rng.i32(-50..50);
    let mut made = json!({"type": of, "minimum": least, "maximum": least + rng.i32(2..100)});
    if rng.bool() {
        made["exclusiveMinimum"] = true.into();
    }
    made
}
