//! Which object a JSON text holds: its kind and name, read without the rest. It never checks that the rest is well formed.

use crate::Kind;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// The kind and name of an object. Parts that the text does not have are empty.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ObjectRef<'t> {
    pub(crate) api_version: Cow<'t, str>,
    pub(crate) kind: Cow<'t, str>,
    pub(crate) name: Cow<'t, str>,
}

impl<'t> ObjectRef<'t> {
    /// Reads until all three parts are found. Kubernetes serves them first, so this costs little for an object of any size.
    pub(crate) fn of(text: &'t str) -> Self {
        let mut object = Self::default();
        let mut reader = serde_json::Deserializer::from_str(text);
        // The reader reports text behind the visited part as an error; what was read until then counts.
        drop(reader.deserialize_map(ObjectVisitor(&mut object)));
        object
    }

    /// Whether the object is of kind `K`.
    pub(crate) fn is_of_kind<K: Kind>(&self) -> bool {
        self.kind == K::KIND && self.api_version == K::API_VERSION
    }

    fn is_complete(&self) -> bool {
        !(self.api_version.is_empty() || self.kind.is_empty() || self.name.is_empty())
    }
}

/// Visits the object itself.
struct ObjectVisitor<'o, 't>(&'o mut ObjectRef<'t>);

impl<'t> Visitor<'t> for ObjectVisitor<'_, 't> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key_seed(StringVisitor)? {
            match &*key {
                "apiVersion" => self.0.api_version = map.next_value_seed(StringVisitor)?,
                "kind" => self.0.kind = map.next_value_seed(StringVisitor)?,
                "metadata" => map.next_value_seed(MetadataVisitor(self.0))?,
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
struct MetadataVisitor<'o, 't>(&'o mut ObjectRef<'t>);

impl<'t> DeserializeSeed<'t> for MetadataVisitor<'_, 't> {
    type Value = ();

    fn deserialize<D: Deserializer<'t>>(self, reader: D) -> Result<(), D::Error> {
        reader.deserialize_map(self)
    }
}

impl<'t> Visitor<'t> for MetadataVisitor<'_, 't> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("metadata")
    }

    fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key_seed(StringVisitor)? {
            if key == "name" {
                self.0.name = map.next_value_seed(StringVisitor)?;
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
struct StringVisitor;

impl<'t> DeserializeSeed<'t> for StringVisitor {
    type Value = Cow<'t, str>;

    fn deserialize<D: Deserializer<'t>>(self, reader: D) -> Result<Self::Value, D::Error> {
        reader.deserialize_str(self)
    }
}

impl<'t> Visitor<'t> for StringVisitor {
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
    use super::ObjectRef;

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
            let object = ObjectRef::of(text);
            assert_eq!([&*object.api_version, &*object.kind, &*object.name], expected, "{text}");
        }
    }
}
