//! The body of a server-side apply. The API server reads it as YAML, of which JSON is a part but for some characters: those that YAML allows
//! in no text (YAML 1.2, 5.1), and its line breaks (YAML 1.1, 4.1.4), beside which it drops spaces, are escaped, as JSON may do with any. Sends
//! nothing.

use kube::api::Patch;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};

/// The patch that applies a body.
///
/// # Errors
/// [`kube::Error::SerdeError`] if it cannot be written as JSON.
pub(crate) fn apply_patch<T: Serialize>(body: &T) -> Result<Patch<Box<RawValue>>, kube::Error> {
    as_yaml(body).map(Patch::Apply).map_err(kube::Error::SerdeError)
}

fn as_yaml<T: Serialize>(body: &T) -> serde_json::Result<Box<RawValue>> {
    let json = to_raw_value(body)?;
    match json.get().contains(is_other_in_yaml) {
        false => Ok(json),
        true => RawValue::from_string(escaped(json.get())),
    }
}

/// JSON text that is YAML, too. Only its strings can have such characters.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for character in json.chars() {
        if is_other_in_yaml(character) {
            text.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            text.push(character);
        }
    }
    text
}

/// Whether YAML allows a character in no text, or takes it for a line break. JSON escapes what is below U+0020 in any case.
fn is_other_in_yaml(character: char) -> bool {
    matches!(character, '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn what_yaml_does_not_allow_is_escaped_and_everything_else_stays() -> serde_json::Result<()> {
        for (character, written) in [
            ('\u{7e}', "\"~\""),
            ('\u{7f}', r#""\u007f""#),
            ('\u{85}', r#""\u0085""#),
            ('\u{90}', r#""\u0090""#),
            ('\u{9f}', r#""\u009f""#),
            ('\u{a0}', "\"\u{a0}\""),
            ('ä', "\"ä\""),
            ('\u{2027}', "\"\u{2027}\""),
            ('\u{2028}', r#""\u2028""#),
            ('\u{2029}', r#""\u2029""#),
            ('\u{ffff}', r#""\uffff""#),
            ('🦀', "\"🦀\""),
            ('"', r#""\"""#),
            ('\n', r#""\n""#),
        ] {
            assert_eq!(as_yaml(&character)?.get(), written);
            let value = json!({"a": {format!("before {character}"): format!("{character} after {character}")}});
            let written = as_yaml(&value)?;
            assert_eq!(serde_json::from_str::<Value>(written.get())?, value);
            let raw: Box<RawValue> = serde_json::from_str(&value.to_string())?;
            assert_eq!(as_yaml(&raw)?.get(), written.get(), "text that is taken as it is");
        }
        Ok(())
    }
}
