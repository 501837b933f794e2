//! JSON objects as text: reads and writes their fields without parsing the values. Pure.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, Visitor},
};
use serde_json::value::RawValue;

/// The fields of a JSON object, in their order.
#[derive(Debug, Default)]
pub(crate) struct RawFields<'t>(pub(crate) Vec<(Cow<'t, str>, &'t RawValue)>);

/// The key of a field.
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct RawKey<'t>(#[serde(borrow)] pub(crate) Cow<'t, str>);

impl<'t> RawFields<'t> {
    /// Takes a field out.
    pub(crate) fn remove(&mut self, name: &str) -> Option<&'t RawValue> {
        let place = self.0.iter().position(|(key, _)| key == name)?;
        Some(self.0.remove(place).1)
    }

    /// The number of bytes of all fields as text.
    pub(crate) fn length(&self) -> usize {
        self.0.iter().map(|(key, value)| key.len() + value.get().len() + r#","":"#.len()).sum()
    }
}

/// The fields of a JSON object; none if the text is no JSON object.
pub(crate) fn raw_fields(text: &str) -> Option<Vec<(Cow<'_, str>, &RawValue)>> {
    serde_json::from_str::<RawFields<'_>>(text).ok().map(|fields| fields.0)
}

/// Appends a field to the text of an object without its closing brace.
pub(crate) fn push_field(text: &mut String, key: &str, value: &str) {
    push_key(text, key);
    text.push_str(value);
}

/// Appends a key and its colon, after a comma unless it is the first.
pub(crate) fn push_key(text: &mut String, key: &str) {
    if !text.ends_with('{') {
        text.push(',');
    }
    if key.bytes().any(|byte| matches!(byte, b'"' | b'\\' | 0..=0x1f)) {
        text.push_str(&serde_json::Value::from(key).to_string());
    } else {
        text.push('"');
        text.push_str(key);
        text.push('"');
    }
    text.push(':');
}

impl<'de> Deserialize<'de> for RawFields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;
        impl<'de> Visitor<'de> for Fields {
            type Value = RawFields<'de>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<RawFields<'de>, A::Error> {
                // As many as the metadata of most objects has.
                let mut fields = Vec::with_capacity(16);
                while let Some((RawKey(key), value)) = map.next_entry()? {
                    fields.push((key, value));
                }
                Ok(RawFields(fields))
            }
        }
        deserializer.deserialize_map(Fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_are_found_in_their_order_and_written_as_they_were() {
        let text = r#"{"b":{"c": [1, 2]},"a":null,"odd \"key\"":"\u00e9","tab\t":1}"#;
        let found = raw_fields(text).unwrap_or_default();
        assert_eq!(found.iter().map(|(key, _)| &**key).collect::<Vec<_>>(), ["b", "a", "odd \"key\"", "tab\t"]);
        let mut written = "{".to_owned();
        found.iter().for_each(|(key, value)| push_field(&mut written, key, value.get()));
        assert_eq!(written + "}", text);
    }

    #[test]
    fn what_is_no_object_has_no_members() {
        for text in ["", "7", "[]", "null", "{", r#"{"a":}"#, r#"{"a":1}}"#] {
            assert!(raw_fields(text).is_none(), "{text}");
        }
        assert_eq!(raw_fields(" {} ").map(|fields| fields.len()), Some(0));
    }
}
