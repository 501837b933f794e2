//! Draws values from an OpenAPI schema: mostly such as it allows, at times others. Knows nothing about what they mean.

use fastrand::Rng;
use serde_json::{Map, Value, json};

/// One in so many values is not what the schema says.
const WRONG: u32 = 40;

/// The most elements of a list that says nothing about its length.
const ELEMENTS: u64 = 3;

/// A value for a schema.
pub fn draw(rng: &mut Rng, schema: &Value) -> Value {
    if rng.u32(0..WRONG) == 0 {
        return wrong(rng);
    }
    if schema["nullable"] == true && rng.u8(0..6) == 0 {
        return Value::Null;
    }
    if let Some(values) = schema["enum"].as_array() {
        return rng.choice(values).cloned().unwrap_or_default();
    }
    match schema["type"].as_str().unwrap_or_default() {
        "object" => object(rng, schema),
        "array" => array(rng, schema),
        "integer" => integer(rng, schema).into(),
        "number" => (f64::from(rng.i32(0..100)) / 4.0).into(),
        "boolean" => rng.bool().into(),
        _ => text(rng, schema),
    }
}

/// A value of any type.
fn wrong(rng: &mut Rng) -> Value {
    let values = [Value::Null, json!("wrong"), json!(-1), json!(2.5), json!(true), json!({}), json!([])];
    rng.choice(values).unwrap_or_default()
}

fn object(rng: &mut Rng, schema: &Value) -> Value {
    let required: Vec<_> = schema["required"].as_array().into_iter().flatten().collect();
    let mut object = Map::new();
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let is_required = required.iter().any(|required| **required == **name);
        let is_there = if is_required { rng.u32(0..WRONG) > 0 } else { rng.bool() };
        if is_there {
            object.insert(name.clone(), draw(rng, field));
        }
    }
    if let Some(field) = schema.get("additionalProperties").filter(|field| field.is_object()) {
        for name in ["a", "b"] {
            if rng.bool() {
                object.insert(name.to_owned(), draw(rng, field));
            }
        }
    }
    object.into()
}

/// A list. Elements with the same keys are drawn as well, which an API server refuses.
fn array(rng: &mut Rng, schema: &Value) -> Value {
    let least = schema["minItems"].as_u64().unwrap_or_default();
    let most = schema["maxItems"].as_u64().map_or(ELEMENTS, |most| most.min(ELEMENTS)).max(least);
    let count = rng.u64(least..=most);
    (0..count).map(|_| draw(rng, &schema["items"])).collect()
}

/// A number, seldom one that is too small or too great.
fn integer(rng: &mut Rng, schema: &Value) -> i64 {
    let least = schema["minimum"].as_i64().unwrap_or(-1);
    let most = schema["maximum"].as_i64().unwrap_or(least + 9).max(least);
    match rng.u32(0..WRONG) {
        0 => least - 1,
        1 => most + 1,
        _ => rng.i64(least..=most),
    }
}

fn text(rng: &mut Rng, schema: &Value) -> Value {
    if schema["format"] == "date-time" {
        return "2026-01-01T00:00:00Z".into();
    }
    let words = ["Ready", "Stalled", "other", ""];
    rng.choice(words).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a value has the type and the limits of a schema. Only what the test below uses.
    fn fits(schema: &Value, value: &Value) -> bool {
        let is_known = |known: &Vec<Value>| known.contains(value);
        match schema["type"].as_str().unwrap_or_default() {
            _ if value.is_null() => schema["nullable"] == true,
            "string" => value.is_string() && schema["enum"].as_array().is_none_or(is_known),
            "integer" => value.as_i64().is_some_and(|number| (0..=7).contains(&number)),
            "array" => value.as_array().is_some_and(|items| items.iter().all(|item| fits(&schema["items"], item))),
            _ => value
                .as_object()
                .is_some_and(|object| object.iter().all(|(name, value)| fits(&schema["properties"][name], value))),
        }
    }

    #[test]
    fn most_values_are_what_the_schema_says_and_some_are_not() {
        let schema = json!({"type": "object", "required": ["word"], "properties": {
            "word": {"type": "string", "enum": ["a", "b"]},
            "numbers": {"type": "array", "items": {"type": "integer", "minimum": 0, "maximum": 7}, "nullable": true},
        }});
        let mut rng = Rng::with_seed(1);
        let drawn: Vec<_> = (0..1_000).map(|_| draw(&mut rng, &schema)).collect();
        let fitting = drawn.iter().filter(|value| fits(&schema, value)).count();
        assert!((700..990).contains(&fitting), "{fitting}");
        assert!(drawn.iter().any(|value| value["word"] == "a") && drawn.iter().any(|value| value["word"] == "b"));
    }
}
