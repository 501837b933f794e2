//! From JSON text to a type, with the path of the field that does not fit. It never gives a line and column: the text crosses
//! from the host and nobody sees it.

use crate::path;
use serde::de::DeserializeOwned;

/// What does not fit a type: the path of the field and what is wrong with it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct ParseError(String);

/// Reads `text` into `T`.
///
/// # Errors
/// A field does not fit.
pub(crate) fn parse<T: DeserializeOwned>(text: &str) -> Result<T, ParseError> {
    serde_json::from_str(text).map_err(|error| describe(text, &error))
}

// Not generic, so that a plugin holds this code once and not once for each type that it reads.
#[cold]
fn describe(text: &str, error: &serde_json::Error) -> ParseError {
    let message = error.to_string();
    let message = message.rfind(" at line ").map_or(&*message, |end| &message[..end]);
    ParseError(match path::at(text, error.line(), error.column()) {
        path if path.is_empty() => message.to_owned(),
        path => format!("{path}: {message}"),
    })
}

#[cfg(test)]
mod tests {
    use super::parse;
    use serde::Deserialize;
    use std::collections::BTreeMap;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "read by the derived Debug only")]
    struct Outer {
        inner: Vec<Inner>,
        #[serde(default)]
        labels: BTreeMap<String, String>,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "read by the derived Debug only")]
    struct Inner {
        port: u16,
        mode: Option<Mode>,
    }

    #[derive(Debug, Deserialize)]
    enum Mode {
        A,
    }

    #[test]
    fn names_the_path_of_the_field() {
        let cases = [
            (r#"{"inner":[{"port":1},{"port":"x"}]}"#, "inner[1].port: invalid type: string \"x\", expected u16"),
            (r#"{"inner":[{"port":"x\"}{"}]}"#, "inner[0].port: invalid type: string \"x\\\"}{\", expected u16"),
            (r#"{"inner":[{"port":70000}]}"#, "inner[0].port: invalid value: integer `70000`, expected u16"),
            (r#"{"inner":[{"port":1.5}]}"#, "inner[0].port: invalid type: floating point `1.5`, expected u16"),
            (r#"{"inner":[{"port":{"a":1}}]}"#, "inner[0].port: invalid type: map, expected u16"),
            (r#"{"inner":[{"port":null}]}"#, "inner[0].port: invalid type: null, expected u16"),
            (r#"{"inner":[{"mode":"A"}]}"#, "inner[0]: missing field `port`"),
            (r#"{"inner":[{"mode":"B"}]}"#, "inner[0].mode: unknown variant `B`, expected `A`"),
            (r#"{"inner":[{}]}"#, "inner[0]: missing field `port`"),
            ("{\n  \"inner\": [\n    {}\n  ]\n}", "inner[0]: missing field `port`"),
            (r#"{"inner":7}"#, "inner: invalid type: integer `7`, expected a sequence"),
            (r#"{"inner":[],"labels":{"a/b":1}}"#, "labels.a/b: invalid type: integer `1`, expected a string"),
            (r#"{"other":[]}"#, "other: unknown field `other`, expected `inner` or `labels`"),
            (r#"{}"#, "missing field `inner`"),
            (r#"{"labels":{}}"#, "missing field `inner`"),
            (r#"7"#, "invalid type: integer `7`, expected struct Outer"),
        ];
        for (text, expected) in cases {
            let message = parse::<Outer>(text).err().map(|error| error.to_string());
            assert_eq!(message.as_deref(), Some(expected), "{text}");
        }
    }
}
