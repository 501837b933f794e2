//! A cheap first look at an object's JSON text: its kind and name, without reading the rest. It never checks that the rest
//! is well formed.

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// What tells objects apart. Parts that the text does not have are empty.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Head<'t> {
    pub(crate) api_version: Cow<'t, str>,
    pub(crate) kind: Cow<'t, str>,
    pub(crate) name: Cow<'t, str>,
}

impl<'t> Head<'t> {
    /// Looks until all three parts are seen. Kubernetes serves them first, so that this costs little for any size.
    pub(crate) fn of(text: &'t str) -> Self {
        let mut head = Self::default();
        let mut reader = serde_json::Deserializer::from_str(text);
        // The reader calls a look that ends early an error; what was seen until then counts.
        drop(reader.deserialize_map(Top(&mut head)));
        head
    }

    fn is_complete(&self) -> bool {
        !(self.api_version.is_empty() || self.kind.is_empty() || self.name.is_empty())
    }
}

/// Visits the object itself.
struct Top<'h, 't>(&'h mut Head<'t>);

impl<'t> Visitor<'t> for Top<'_, 't> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key_seed(Text)? {
            match &*key {
                "apiVersion" => self.0.api_version = map.next_value_seed(Text)?,
                "kind" => self.0.kind = map.next_value_seed(Text)?,
                "metadata" => map.next_value_seed(Metadata(self.0))?,
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
            if self.0.is_complete() {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Visits `metadata`.
struct Metadata<'h, 't>(&'h mut Head<'t>);

impl<'t> DeserializeSeed<'t> for Metadata<'_, 't> {
    type Value = ();

    fn deserialize<D: Deserializer<'t>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'t> Visitor<'t> for Metadata<'_, 't> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("metadata")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key_seed(Text)? {
            if key == "name" {
                self.0.name = map.next_value_seed(Text)?;
                if self.0.is_complete() {
                    return Ok(());
                }
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        Ok(())
    }
}

/// Reads a string, without copying it unless it holds an escape.
struct Text;

impl<'t> DeserializeSeed<'t> for Text {
    type Value = Cow<'t, str>;

    fn deserialize<D: Deserializer<'t>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl<'t> Visitor<'t> for Text {
    type Value = Cow<'t, str>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E>(self, text: &'t str) -> Result<Self::Value, E> {
        Ok(Cow::Borrowed(text))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Cow::Owned(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::Head;

    #[test]
    fn finds_the_parts_in_any_order_and_stops_early() {
        let cases = [
            (r#"{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"name":"no"},"name":"a"},"#, ["v1", "Pod", "a"]),
            (
                r#"{"metadata":{"name":"a","uid":"u"},"spec":{"kind":"no"},"kind":"Pod","apiVersion":"v1"}"#,
                ["v1", "Pod", "a"],
            ),
            (r#"{"kind":"P\u006fd","apiVersion":"v1"}"#, ["v1", "Pod", ""]),
            (r#"{"kind":7}"#, ["", "", ""]),
            ("not JSON", ["", "", ""]),
        ];
        for (text, expected) in cases {
            let head = Head::of(text);
            assert_eq!([&*head.api_version, &*head.kind, &*head.name], expected, "{text}");
        }
    }
}
