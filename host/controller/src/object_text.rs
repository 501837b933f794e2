//! The JSON text of a cached object, with the places of its fields: whoever needs one of them finds it without parsing the others. The text
//! of an object that nothing happens to is packed. Pure.

use std::{borrow::Cow, fmt, sync::Arc};

use serde_json::value::RawValue;

use crate::{
    packed_text::PackedText,
    raw_json::{push_key, raw_fields},
};

/// What stands between a value, or the beginning, and the next key: a comma or a brace, and a quote.
const BEFORE_KEY: usize = 2;

/// What stands between a key and its value: a quote and a colon.
const AFTER_KEY: usize = 2;

/// As many fields as most objects have, or more.
const FIELDS: usize = 6;

/// The text of an object.
#[derive(Clone)]
pub struct ObjectText(Form);

#[derive(Clone)]
enum Form {
    Plain(PlainText),
    Packed(PackedText),
}

#[derive(Clone)]
struct PlainText {
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
        ObjectText(Form::Plain(PlainText { text: all.text.into_boxed_str(), places: ends.map(place).collect() }))
    }
}

fn place((key, value): (usize, usize)) -> Option<Place> {
    Some(Place { key: key.try_into().ok()?, value: value.try_into().ok()? })
}

impl ObjectText {
    /// The whole text.
    pub fn read(&self) -> Cow<'_, str> {
        match &self.0 {
            Form::Plain(plain) => Cow::Borrowed(&plain.text),
            Form::Packed(packed) => Cow::Owned(packed.read()),
        }
    }

    /// How many bytes the whole text has.
    pub(crate) fn len(&self) -> usize {
        match &self.0 {
            Form::Plain(plain) => plain.text.len(),
            Form::Packed(packed) => packed.len(),
        }
    }

    /// Whether these words are somewhere in it.
    pub fn contains(&self, words: &str) -> bool {
        self.read().contains(words)
    }

    /// Whether it is packed.
    pub(crate) fn is_packed(&self) -> bool {
        matches!(self.0, Form::Packed(_))
    }

    /// The same text in less memory, beside another one that is like it; none if it is packed already, or packing would save little.
    pub(crate) fn packed_beside(&self, like: &Arc<str>) -> Option<Self> {
        match &self.0 {
            // One that was put together here has no space between its parts, so its places are found again.
            Form::Plain(PlainText { text, places: Some(_) }) => {
                PackedText::of(text, like).map(|packed| Self(Form::Packed(packed)))
            }
            Form::Plain(_) | Form::Packed(_) => None,
        }
    }

    /// The same text for one who reads it several times; none if it is not packed.
    pub(crate) fn unpacked(&self) -> Option<Self> {
        match &self.0 {
            Form::Plain(_) => None,
            Form::Packed(packed) => Some(Self(Form::Plain(PlainText::compact(packed.read())))),
        }
    }

    /// How many bytes of memory the text takes.
    pub(crate) fn size(&self) -> usize {
        match &self.0 {
            Form::Plain(plain) => plain.text.len(),
            Form::Packed(packed) => packed.size(),
        }
    }

    /// Its fields as text, in their order; none if it is no JSON object.
    pub(crate) fn fields(&self) -> Option<Vec<(Cow<'_, str>, Cow<'_, str>)>> {
        match &self.0 {
            Form::Plain(plain) => {
                let borrowed = |(key, value)| (key, Cow::Borrowed(value));
                Some(plain.fields()?.into_iter().map(borrowed).collect())
            }
            Form::Packed(packed) => {
                let owned =
                    |(key, value): (Cow<'_, str>, &str)| (Cow::Owned(key.into_owned()), Cow::Owned(value.to_owned()));
                Some(PlainText::from(packed.read()).fields()?.into_iter().map(owned).collect())
            }
        }
    }

    /// The text of a field.
    pub(crate) fn field(&self, name: &str) -> Option<Cow<'_, str>> {
        match &self.0 {
            Form::Plain(plain) => plain.field(name).map(Cow::Borrowed),
            Form::Packed(packed) => {
                PlainText::from(packed.read()).field(name).map(|value| Cow::Owned(value.to_owned()))
            }
        }
    }
}

impl PlainText {
    /// A text without space between its parts, with the places of its fields.
    fn compact(text: String) -> Self {
        let place = |value: &RawValue| {
            // Values are parts of the text.
            let begin = value.get().as_ptr().addr().checked_sub(text.as_ptr().addr())?;
            place((begin.checked_sub(AFTER_KEY)?, begin + value.get().len()))
        };
        let places = raw_fields(&text).and_then(|fields| fields.into_iter().map(|(_, value)| place(value)).collect());
        Self { text: text.into(), places }
    }

    fn fields(&self) -> Option<Vec<(Cow<'_, str>, &str)>> {
        match &self.places {
            Some(places) => self.placed(places).map(|(key, value)| Some((unescaped(key)?, value))).collect(),
            None => Some(raw_fields(&self.text)?.into_iter().map(|(key, value)| (key, value.get())).collect()),
        }
    }

    fn field(&self, name: &str) -> Option<&str> {
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

impl From<String> for PlainText {
    fn from(text: String) -> Self {
        Self { text: text.into(), places: None }
    }
}

fn unescaped(key: &str) -> Option<Cow<'_, str>> {
    match key.contains('\\') {
        true => serde_json::from_str(&format!("\"{key}\"")).ok().map(Cow::Owned),
        false => Some(Cow::Borrowed(key)),
    }
}

impl PartialEq for ObjectText {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.read() == other.read()
    }
}

impl fmt::Debug for ObjectText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.read())
    }
}

impl From<&str> for ObjectText {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl From<String> for ObjectText {
    fn from(text: String) -> Self {
        Self(Form::Plain(text.into()))
    }
}

/// The text of an object, as if it came from the API server.
#[cfg(test)]
pub(crate) fn put_together(object: &serde_json::Value) -> ObjectText {
    let mut text = TextBuilder::default();
    let fields = object.as_object().into_iter().flatten();
    fields.for_each(|(key, value)| text.push(key, |text| text.push_str(&value.to_string())));
    text.finish([("apiVersion", "example.com/v1"), ("kind", "Web")])
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

    fn has_places(text: &ObjectText) -> bool {
        matches!(&text.0, Form::Plain(PlainText { places: Some(_), .. }))
    }

    #[test]
    fn a_packed_text_reads_as_it_did_before() {
        let mut text = TextBuilder::default();
        WRITTEN.iter().for_each(|(key, value)| text.push(key, |text| text.push_str(value)));
        text.push("data", |text| text.extend(["\"", &"x".repeat(400), "\""]));
        let plain = text.finish([("apiVersion", "v1"), ("kind", "Web")]);
        let packed = plain.packed_beside(&Arc::from("")).unwrap_or_else(|| "not packed".into());
        let again = packed.unpacked().unwrap_or_else(|| "not unpacked".into());
        assert!(packed.is_packed() && packed.size() < plain.size() && has_places(&again));
        for other in [&packed, &again] {
            assert_eq!((other, other.len()), (&plain, plain.len()));
            assert_eq!((other.fields(), other.field("spec")), (plain.fields(), plain.field("spec")));
            assert!(other.contains("od\\\"d") && !other.contains("odd"));
        }
        assert!(packed.packed_beside(&Arc::from("")).is_none() && again.unpacked().is_none());
    }

    #[test]
    fn fields_are_found_at_their_places_as_by_parsing() {
        let (built, parsed) = (built(), ObjectText::from(&*built().read()));
        assert!(has_places(&built) && !has_places(&parsed));
        assert_eq!(built.fields(), parsed.fields());
        let fields = built.fields().unwrap_or_default();
        let expected = [("apiVersion", r#""v1""#), ("kind", r#""Web""#)].into_iter().chain(WRITTEN);
        assert!(fields.iter().map(|(key, value)| (&**key, &**value)).eq(expected), "{fields:?}");
        for text in [&built, &parsed] {
            let [status, kind, none] = ["status", "kind", "none"].map(|name| text.field(name));
            assert_eq!((status.as_deref(), kind.as_deref(), none), (Some("null"), Some(r#""Web""#), None));
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
