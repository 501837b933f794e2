//! The JSON text of a cached object, with the places of its fields: whoever needs one of them finds it without parsing the others. Pure.

use std::{borrow::Cow, fmt, ops::Deref};

use crate::raw_json::{push_key, raw_fields};

/// What stands between a value, or the beginning, and the next key: a comma or a brace, and a quote.
const BEFORE_KEY: usize = 2;

/// What stands between a key and its value: a quote and a colon.
const AFTER_KEY: usize = 2;

/// As many fields as most objects have, or more.
const FIELDS: usize = 6;

/// The text of an object.
#[derive(Clone)]
pub struct ObjectText {
    text: Box<str>,
    /// Where its fields are; none if it was not put together here.
    places: Option<Box<[Place]>>,
}

/// Where a field of a compact text ends. It begins where the one before ends.
#[derive(Clone, Copy)]
struct Place {
    key: u32,
    value: u32,
}

/// The text of an object that is put together, without its closing brace.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextBuilder {
    text: String,
    /// The ends of the keys and of the values.
    ends: Vec<(usize, usize)>,
}

impl TextBuilder {
    /// An empty one with room for so many bytes.
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self { text: String::with_capacity(bytes), ends: Vec::with_capacity(FIELDS) }
    }

    /// Appends a field. `write` appends its value as compact JSON.
    pub(crate) fn push(&mut self, key: &str, write: impl FnOnce(&mut String)) {
        push_key(&mut self.text, key);
        let key_end = self.text.len() - AFTER_KEY;
        write(&mut self.text);
        self.ends.push((key_end, self.text.len()));
    }

    /// The whole text, with these fields before the others. Their values are words that need no escape.
    pub(crate) fn finish(self, first: [(&str, &str); 2]) -> ObjectText {
        let length = first.iter().map(|(key, word)| key.len() + word.len() + r#","":"""#.len()).sum::<usize>();
        let mut all = Self::with_capacity(length + self.text.len() + 1);
        all.text.push('{');
        for (key, word) in first {
            all.push(key, |text| text.extend(["\"", word, "\""]));
        }
        let head = all.text.len();
        all.text.push_str(&self.text);
        all.text.push('}');
        let ends = all.ends.into_iter().chain(self.ends.into_iter().map(|(key, value)| (head + key, head + value)));
        ObjectText { text: all.text.into_boxed_str(), places: ends.map(place).collect() }
    }
}

fn place((key, value): (usize, usize)) -> Option<Place> {
    Some(Place { key: key.try_into().ok()?, value: value.try_into().ok()? })
}

impl ObjectText {
    /// Its fields as text, in their order; none if it is no JSON object.
    pub(crate) fn fields(&self) -> Option<Vec<(Cow<'_, str>, &str)>> {
        match &self.places {
            Some(places) => self.placed(places).map(|(key, value)| Some((unescaped(key)?, value))).collect(),
            None => Some(raw_fields(&self.text)?.into_iter().map(|(key, value)| (key, value.get())).collect()),
        }
    }

    /// The text of a field.
    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        match &self.places {
            Some(places) => self.placed(places).find(|(key, _)| *key == name).map(|(_, value)| value),
            None => raw_fields(&self.text)?.into_iter().find(|(key, _)| key == name).map(|(_, value)| value.get()),
        }
    }

    /// The fields at their places, the keys as they are written.
    fn placed<'t>(&'t self, places: &'t [Place]) -> impl Iterator<Item = (&'t str, &'t str)> {
        places.iter().scan(0, |before, Place { key, value }| {
            let (key, value) = (usize::try_from(*key).ok()?, usize::try_from(*value).ok()?);
            let found = (self.text.get(*before + BEFORE_KEY..key)?, self.text.get(key + AFTER_KEY..value)?);
            *before = value;
            Some(found)
        })
    }
}

fn unescaped(key: &str) -> Option<Cow<'_, str>> {
    match key.contains('\\') {
        true => serde_json::from_str(&format!("\"{key}\"")).ok().map(Cow::Owned),
        false => Some(Cow::Borrowed(key)),
    }
}

impl Deref for ObjectText {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl PartialEq for ObjectText {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl fmt::Debug for ObjectText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl From<&str> for ObjectText {
    fn from(text: &str) -> Self {
        Self { text: text.into(), places: None }
    }
}

impl From<String> for ObjectText {
    fn from(text: String) -> Self {
        Self { text: text.into(), places: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITTEN: [(&str, &str); 5] = [
        ("metadata", r#"{"name":"a"}"#),
        ("od\"d", "[1,{\"status\":2}]"),
        ("", "7"),
        ("spec", "{}"),
        ("status", "null"),
    ];

    fn built() -> ObjectText {
        let mut text = TextBuilder::with_capacity(0);
        WRITTEN.iter().for_each(|(key, value)| text.push(key, |text| text.push_str(value)));
        text.finish([("apiVersion", "v1"), ("kind", "Web")])
    }

    #[test]
    fn fields_are_found_at_their_places_as_by_parsing() {
        let (built, parsed) = (built(), ObjectText::from(&*built()));
        assert!(built.places.is_some() && parsed.places.is_none());
        assert_eq!(built.fields(), parsed.fields());
        let fields = built.fields().unwrap_or_default();
        let expected = [("apiVersion", r#""v1""#), ("kind", r#""Web""#)].into_iter().chain(WRITTEN);
        assert!(fields.iter().map(|(key, value)| (&**key, *value)).eq(expected), "{fields:?}");
        for text in [&built, &parsed] {
            assert_eq!(
                (text.field("status"), text.field("kind"), text.field("none")),
                (Some("null"), Some(r#""Web""#), None)
            );
        }
    }

    #[test]
    fn what_is_no_object_has_no_fields() {
        for text in ["", "7", "[]", "null", "{"] {
            assert!(ObjectText::from(text).fields().is_none(), "{text}");
        }
        assert_eq!(ObjectText::from("{}").fields().map(|fields| fields.len()), Some(0));
    }
}
