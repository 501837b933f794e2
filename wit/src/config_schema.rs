//! The JSON schema of a plugin's configuration: judges the schema, and configurations by it. A schema comes from another team, so what
//! could take long or never end in it is refused. Reads no files, and asks nobody for schemas.

use jsonschema::{Draft, PatternOptions, Validator};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most bytes of a schema.
const LARGEST: usize = 64 << 10;

/// The most levels of JSON in a schema. Each is a few calls on the stack.
const DEEPEST: usize = 32;

/// The bytes that one regular expression may become.
const LARGEST_PATTERN: usize = 256 << 10;

/// The most regular expressions of a schema: together they take a few mebibytes.
const MOST_PATTERNS: usize = 32;

/// The most bytes of a configuration times those of its schema. Each value may be compared with all that the schema lists.
const MOST_COMPARED: usize = 1 << 30;

/// The most bytes of a configuration times the regular expressions of its schema. The time to match one grows with its own size, too.
const MOST_MATCHED: usize = 256 << 10;

/// The most bytes of an error's words.
const LONGEST_WORDS: usize = 1024;

/// Keywords by which a schema can be endless, or take a time that its size does not bound.
const REFUSED: [&str; 5] = ["$ref", "$dynamicRef", "$recursiveRef", "unevaluatedItems", "unevaluatedProperties"];

/// Keywords whose values have names of the author's choice, each with a schema.
const NAMED: [&str; 5] = ["properties", "patternProperties", "dependentSchemas", "$defs", "definitions"];

/// Keywords whose values are data.
const DATA: [&str; 5] = ["const", "default", "enum", "example", "examples"];

/// A JSON schema, draft 2020-12.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConfigSchema(Value);

/// Why a configuration does not fit the schema.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// It is no JSON, or nested too deeply to be looked at.
    #[error("the plugin's configuration cannot be read: {0}")]
    Unreadable(String),
    /// It is so large that judging it would take too long.
    #[error("the plugin's configuration has {size} bytes; by the schema in its manifest, at most {most} are judged")]
    TooLarge {
        /// Its bytes.
        size: usize,
        /// How many it may have.
        most: usize,
    },
    /// There is none, and the plugin needs one.
    #[error("the plugin needs a configuration: {0}")]
    Missing(String),
    /// It fits the schema, if there is one, and the plugin cannot use it.
    #[error("the plugin cannot use its configuration: {0}")]
    Refused(String),
    /// A value in it does not fit.
    #[error("the plugin's configuration does not fit the schema in its manifest, at '{path}': {words}")]
    Mismatch {
        /// The JSON pointer of the value; `/` for the whole.
        path: String,
        /// What is wrong with it. The value itself is left out, for it may be long, or nobody else's business.
        words: String,
    },
}

/// Why a schema is none, with the place.
struct InvalidSchema(String);

impl ConfigSchema {
    /// Why it cannot be a plugin's schema; none if it can.
    pub fn fault(&self) -> Option<String> {
        let size = self.0.to_string().len();
        if size > LARGEST {
            return Some(format!("it has {size} bytes; at most {LARGEST} are allowed"));
        }
        if let Some(fault) = find_refused(&self.0, &mut String::new(), 0) {
            return Some(fault);
        }
        let patterns = count_patterns(&self.0);
        if patterns > MOST_PATTERNS {
            return Some(format!("it has {patterns} regular expressions; at most {MOST_PATTERNS} are allowed"));
        }
        self.validator().err().map(|InvalidSchema(why)| why)
    }

    /// Judges a configuration, JSON text. Where there is none, the text `null`, an empty object stands for it: whoever needs nothing
    /// needs no configuration.
    ///
    /// # Errors
    /// [`ConfigError`] with the first value that does not fit.
    pub fn check(&self, config: &str) -> Result<(), ConfigError> {
        let (size, most) = (config.len(), self.most_judged());
        if size > most {
            return Err(ConfigError::TooLarge { size, most });
        }
        let unreadable = |error: serde_json::Error| ConfigError::Unreadable(error.to_string());
        let config: Value = serde_json::from_str(config).map_err(unreadable)?;
        let is_missing = config.is_null();
        let config = if is_missing { Value::Object(serde_json::Map::new()) } else { config };
        let validator = self.validator().map_err(|InvalidSchema(why)| ConfigError::Unreadable(why))?;
        let Err(error) = validator.validate(&config) else { return Ok(()) };
        let words = shortened(error.masked().to_string());
        if is_missing {
            return Err(ConfigError::Missing(words));
        }
        let path = error.instance_path().to_string();
        let path = if path.is_empty() { "/".to_owned() } else { shortened(path) };
        Err(ConfigError::Mismatch { path, words })
    }

    /// The bytes of the largest configuration that is judged: the host does nothing else meanwhile.
    fn most_judged(&self) -> usize {
        let (size, patterns) = (self.0.to_string().len(), count_patterns(&self.0));
        let compared = MOST_COMPARED / size.max(1);
        MOST_MATCHED.checked_div(patterns).map_or(compared, |matched| matched.min(compared))
    }

    fn validator(&self) -> Result<Validator, InvalidSchema> {
        jsonschema::options()
            .with_draft(Draft::Draft202012)
            // Matches in a time that grows with the text only, without look-around and back-references.
            .with_pattern_options(PatternOptions::regex().size_limit(LARGEST_PATTERN))
            .offline()
            .build(&self.0)
            .map_err(|error| {
                let path = error.instance_path().to_string();
                InvalidSchema(shortened(format!("at '{path}': {}", error.masked())))
            })
    }
}

/// The first keyword that is refused, in words; or that it is nested too deeply. `path`: where the schema is.
fn find_refused(schema: &Value, path: &mut String, depth: usize) -> Option<String> {
    if depth > DEEPEST {
        return Some(format!("at '{path}': it is nested more than {DEEPEST} levels deep"));
    }
    match schema {
        Value::Object(keywords) => keywords.iter().find_map(|(keyword, value)| {
            if REFUSED.contains(&keyword.as_str()) {
                return Some(format!("at '{path}': {keyword} is not allowed; write out what it stands for"));
            }
            match value {
                _ if DATA.contains(&keyword.as_str()) => None,
                Value::Object(schemas) if NAMED.contains(&keyword.as_str()) => {
                    schemas.iter().find_map(|(name, schema)| {
                        within(path, &format!("{keyword}/{name}"), |path| find_refused(schema, path, depth + 2))
                    })
                }
                value => within(path, keyword, |path| find_refused(value, path, depth + 1)),
            }
        }),
        Value::Array(schemas) => schemas.iter().enumerate().find_map(|(number, schema)| {
            within(path, &number.to_string(), |path| find_refused(schema, path, depth + 1))
        }),
        _ => None,
    }
}

/// How many regular expressions there are at most: whatever could be one counts.
fn count_patterns(schema: &Value) -> usize {
    match schema {
        Value::Object(keywords) => keywords
            .iter()
            .map(|(keyword, value)| {
                let own = match (keyword.as_str(), value) {
                    ("pattern", Value::String(_)) => 1,
                    ("patternProperties", Value::Object(patterns)) => patterns.len(),
                    _ => 0,
                };
                own + count_patterns(value)
            })
            .sum(),
        Value::Array(schemas) => schemas.iter().map(count_patterns).sum(),
        _ => 0,
    }
}

fn within<T>(path: &mut String, step: &str, look: impl FnOnce(&mut String) -> T) -> T {
    let length = path.len();
    path.push('/');
    path.push_str(step);
    let result = look(path);
    path.truncate(length);
    result
}

fn shortened(mut words: String) -> String {
    words.truncate(words.floor_char_boundary(LONGEST_WORDS));
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_configuration_that_does_not_fit_is_refused_with_its_path() {
        let schema = ConfigSchema(json!({
            "type": "object",
            "required": ["colour"],
            "properties": {"colour": {"enum": ["red", "green"]}, "sizes": {"items": {"type": "integer"}},
                "$ref": {"pattern": "^a+$"}},
            "additionalProperties": false,
        }));
        assert_eq!(schema.fault(), None);
        let checked = |config: &str| schema.check(config).err().map(|error| error.to_string()).unwrap_or_default();
        for (config, words) in [
            (r#"{"colour":"red","sizes":[1,2],"$ref":"aaa"}"#, &[][..]),
            (r#"{"colour":"blue"}"#, &["'/colour'", "not one of", "red"]),
            (r#"{"colour":"red","sizes":[1,"secret"]}"#, &["'/sizes/1'", "integer"]),
            (r#"{"colour":"red","$ref":"b"}"#, &["'/$ref'", "does not match"]),
            (r#"{"colour":"red","color":1}"#, &["'/'", "color"]),
            ("[]", &["'/'", "object"]),
            ("null", &["needs a configuration", "colour"]),
            ("{", &["cannot be read"]),
        ] {
            let told = checked(config);
            assert!(words.iter().all(|word| told.contains(word)) && told.is_empty() == words.is_empty(), "{told}");
            assert!(!told.contains("secret") && !told.contains("blue"), "{told}");
        }
        assert!(checked(&format!("{}{}", "[".repeat(500), "]".repeat(500))).contains("cannot be read"));
        assert_eq!(ConfigSchema(json!({"type": "object"})).check("null"), Ok(()));
    }

    #[test]
    fn a_schema_that_could_be_endless_is_refused_with_its_place() {
        let deep = (0..40).fold(json!({}), |inner, _| json!({"not": inner}));
        let many = |keyword: &str| {
            let schemas = (0..33).map(|number| (format!("(a{{100}}){{{number}}}"), json!(true))).collect();
            json!({keyword: Value::Object(schemas)})
        };
        let huge = json!({"description": "a".repeat(LARGEST)});
        for (schema, words) in [
            (json!({"$ref": "#"}), "$ref is not allowed"),
            (json!({"properties": {"a": {"allOf": [{"$ref": "http://example.com"}]}}}), "'/properties/a/allOf/0'"),
            (json!({"unevaluatedProperties": false}), "unevaluatedProperties is not allowed"),
            (json!({"type": "text"}), "'/type'"),
            (json!({"properties": {"a": {"pattern": "("}}}), "'/properties/a/pattern'"),
            (json!({"pattern": "(a{1000}){1000}"}), "pattern"),
            (json!({"pattern": "(?=a)"}), "pattern"),
            (json!({"pattern": r"(a)\1"}), "pattern"),
            (many("patternProperties"), "33 regular expressions"),
            (json!({"allOf": vec![json!({"pattern": "(a{100}){10}"}); 33]}), "33 regular expressions"),
            (json!({"not": {"$schema": "http://json-schema.org/draft-04/schema#", "$ref": "#"}}), "$ref"),
            (deep, "levels deep"),
            (huge, "bytes"),
            (json!("object"), ""),
        ] {
            let fault = ConfigSchema(schema.clone()).fault();
            assert!(fault.as_ref().is_some_and(|fault| fault.contains(words)), "{schema:.200}: {fault:?}");
        }
    }

    /// What an ill-meant schema and configuration can do at most is bounded: no stack overflows, and nothing backtracks.
    #[test]
    fn hostile_schemas_and_configurations_end() {
        let depth = DEEPEST - 1;
        let deep = ConfigSchema((0..depth).fold(json!({"type": "array"}), |inner, _| json!({"items": inner})));
        assert_eq!(deep.fault(), None);
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(deep.check(&nested(100)), Ok(()));
        let number = format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let path = "/0".repeat(depth);
        assert!(matches!(deep.check(&number), Err(ConfigError::Mismatch { path: found, .. }) if found == path));
        for levels in [200, 100_000] {
            assert!(matches!(deep.check(&nested(levels)), Err(ConfigError::Unreadable(_))), "{levels} levels");
        }

        // Exponential where a matcher backtracks.
        let patterns = ConfigSchema(json!({"pattern": "^(a|a)*(a*)*(a+)+$"}));
        assert_eq!(patterns.fault(), None);
        let text = format!("\"{}b\"", "a".repeat(1 << 16));
        let told = patterns.check(&text).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(told.contains("does not match") && told.len() < 2 * LONGEST_WORDS, "{told:.200}");

        let long = "x".repeat(1 << 16);
        let names =
            ConfigSchema(json!({"propertyNames": {"maxLength": 1}, "additionalProperties": {"type": "string"}}));
        let told = names.check(&json!({&long: 1}).to_string()).err().map(|error| error.to_string()).unwrap_or_default();
        assert!(!told.is_empty() && told.len() < 3 * LONGEST_WORDS, "{} bytes", told.len());
    }

    #[test]
    fn a_configuration_that_would_take_long_is_refused() {
        let repeated = |number: usize| format!("[ab]*a[ab]{{{number}}}z");
        let patterns: Vec<_> = (0..MOST_PATTERNS - 1).map(|_| json!({"pattern": repeated(400)})).collect();
        let slow = ConfigSchema(json!({"anyOf": patterns}));
        let constants: Vec<_> = (0..3_000).map(|number| json!({"const": number})).collect();
        let many = ConfigSchema(json!({"items": {"anyOf": constants}}));
        for (schema, config) in
            [(&slow, json!("ab".repeat(100_000)).to_string()), (&many, json!(vec![7; 200_000]).to_string())]
        {
            assert_eq!(schema.fault(), None);
            let told = schema.check(&config).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(told.contains(&format!("{} bytes", config.len())), "{told:.200}");
        }
        assert_eq!(many.check(&json!(vec![7; 2_000]).to_string()), Ok(()));
    }
}
