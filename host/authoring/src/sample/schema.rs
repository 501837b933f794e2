//! The schema of a CRD as one of JSON, and what does not fit it. It makes no values.

use jsonschema::{Draft, PatternOptions, Validator};
use serde_json::{Value, json};

/// The bytes that one regular expression may become.
const LARGEST_PATTERN: usize = 4 << 20;

/// Judges values by a schema. A schema that is none is met by nothing.
pub(super) struct Judge(Result<Validator, String>);

impl Judge {
    pub(super) fn new(schema: &Value) -> Self {
        let built = jsonschema::options()
            // In OpenAPI 3.0, as in this one, `exclusiveMinimum` is true or false.
            .with_draft(Draft::Draft4)
            .with_pattern_options(PatternOptions::regex().size_limit(LARGEST_PATTERN))
            .offline()
            .build(&plain(schema));
        Self(built.map_err(|error| error.to_string()))
    }

    pub(super) fn is_met(&self, value: &Value) -> bool {
        self.0.as_ref().is_ok_and(|validator| validator.is_valid(value))
    }

    /// What does not fit, with where it is.
    pub(super) fn unmet(&self, value: &Value, root: &str) -> Vec<String> {
        let validator = match &self.0 {
            Ok(validator) => validator,
            Err(why) => return vec![format!("{root}: its schema cannot be read: {why}")],
        };
        let place = |path: String| format!("{root}{}", path.replace('/', "."));
        validator
            .iter_errors(value)
            .map(|error| format!("{}: {error}", place(error.instance_path().to_string())))
            .collect()
    }
}

/// Without what only Kubernetes knows.
fn plain(schema: &Value) -> Value {
    let Value::Object(words) = schema else { return schema.clone() };
    let mut plain = serde_json::Map::new();
    for (word, value) in words {
        let value = match word.as_str() {
            "properties" => {
                let schemas = value.as_object().into_iter().flatten();
                Value::Object(schemas.map(|(name, schema)| (name.clone(), self::plain(schema))).collect())
            }
            "items" | "additionalProperties" | "not" => self::plain(value),
            "anyOf" | "oneOf" | "allOf" => value.as_array().into_iter().flatten().map(self::plain).collect(),
            // What these are is data.
            "required" | "enum" | "type" | "pattern" | "format" | "uniqueItems" => value.clone(),
            word if word.starts_with("min") || word.starts_with("max") || word.starts_with("exclusive") => {
                value.clone()
            }
            "multipleOf" => value.clone(),
            _ => continue,
        };
        plain.insert(word.clone(), value);
    }
    if words.get("x-kubernetes-int-or-string") == Some(&Value::Bool(true))
        || plain.get("format") == Some(&json!("int-or-string"))
    {
        plain.remove("format");
        plain.insert("type".to_owned(), json!(["integer", "string"]));
    }
    // A list of no fields is none in this draft.
    if plain.get("required").and_then(Value::as_array).is_some_and(Vec::is_empty) {
        plain.remove("required");
    }
    let plain = Value::Object(plain);
    match words.get("nullable") {
        Some(Value::Bool(true)) => json!({"anyOf": [{"type": "null"}, plain]}),
        _ => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_of_kubernetes_is_read_as_one() {
        let int_or_text = json!({"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}], "pattern": "^[0-9]+%$"});
        let exclusive = json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true});
        let named_like_words = json!({"type": "object", "required": [], "properties": {"format": {"type": "integer"}}});
        for (schema, value, expected) in [
            (&int_or_text, json!(1), true),
            (&int_or_text, json!("50%"), true),
            (&int_or_text, json!("50"), false),
            (&exclusive, json!(1), false),
            (&exclusive, json!(2), true),
            (&json!({"type": "string", "nullable": true}), json!(null), true),
            (&json!({"type": "string"}), json!(null), false),
            (&named_like_words, json!({"format": 1}), true),
            (&named_like_words, json!({"format": "a"}), false),
        ] {
            assert_eq!(Judge::new(schema).is_met(&value), expected, "{schema} {value}");
        }
        let unmet = Judge::new(&named_like_words).unmet(&json!({"format": "a"}), "spec");
        assert_eq!(unmet, ["spec.format: \"a\" is not of type \"integer\""]);
        let none = Judge::new(&json!({"type": "string", "pattern": "("}));
        assert!(
            !none.is_met(&json!("a"))
                && none.unmet(&json!("a"), "spec")[0].starts_with("spec: its schema cannot be read")
        );
    }
}
