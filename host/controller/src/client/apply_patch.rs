//! The body of a server-side apply. The API server reads it as YAML, of which JSON is a part but for some characters: those that YAML allows
//! in no text (YAML 1.2, 5.1) are escaped, as JSON may do with any. Sends nothing.

use std::io;

use kube::api::Patch;
use serde::Serialize;
use serde_json::{ser::Formatter, value::RawValue};

/// The patch that applies a body.
///
/// # Errors
/// [`kube::Error::SerdeError`] if it cannot be written as JSON.
pub(crate) fn apply_patch<T: Serialize>(body: &T) -> Result<Patch<Box<RawValue>>, kube::Error> {
    text(body).and_then(RawValue::from_string).map(Patch::Apply).map_err(kube::Error::SerdeError)
}

fn text<T: Serialize>(body: &T) -> serde_json::Result<String> {
    let mut text = Vec::new();
    body.serialize(&mut serde_json::Serializer::with_formatter(&mut text, AsYaml))?;
    String::from_utf8(text).map_err(serde::ser::Error::custom)
}

/// Writes JSON that is YAML, too.
struct AsYaml;

impl Formatter for AsYaml {
    fn write_string_fragment<W: io::Write + ?Sized>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        let mut rest = fragment;
        while let Some((place, character)) = rest.char_indices().find(|(_, character)| is_none_of_yaml(*character)) {
            writer.write_all(&rest.as_bytes()[..place])?;
            write!(writer, "\\u{:04x}", u32::from(character))?;
            rest = &rest[place + character.len_utf8()..];
        }
        writer.write_all(rest.as_bytes())
    }

    /// JSON text that is taken as it is. Only its strings can have such characters.
    fn write_raw_fragment<W: io::Write + ?Sized>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        self.write_string_fragment(writer, fragment)
    }
}

/// Whether YAML allows a character in no text. JSON escapes what is below U+0020 in any case.
fn is_none_of_yaml(character: char) -> bool {
    matches!(character, '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}')
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
            ('\u{ffff}', r#""\uffff""#),
            ('🦀', "\"🦀\""),
            ('"', r#""\"""#),
            ('\n', r#""\n""#),
        ] {
            assert_eq!(text(&character)?, written);
            let value = json!({"a": {format!("before {character}"): format!("{character} after {character}")}});
            let written = text(&value)?;
            assert_eq!(serde_json::from_str::<Value>(&written)?, value);
            let raw: Box<RawValue> = serde_json::from_str(&value.to_string())?;
            assert_eq!(text(&raw)?, written, "text that is taken as it is");
        }
        Ok(())
    }
}
