//! The values that an expression works with: those of JSON. They borrow from the object where they can.

use std::{borrow::Cow, cmp::Ordering};

use serde_json::{Map, Value as Json};

/// A value.
#[derive(Clone, Debug)]
pub(super) enum Value<'v> {
    Null,
    Boolean(bool),
    Integer(i64),
    Double(f64),
    Text(Cow<'v, str>),
    /// A list in the object.
    Elements(&'v [Json]),
    /// A list that was made.
    List(Vec<Value<'v>>),
    Object(&'v Map<String, Json>),
    /// A map that was made, in the order in which it was written.
    Map(Vec<(Cow<'v, str>, Value<'v>)>),
    /// An optional value.
    Optional(Option<Box<Value<'v>>>),
}

/// How many bytes of text are compared or copied in one step.
const BYTES_OF_STEP: usize = 16;

impl<'v> Value<'v> {
    /// A value in the object.
    pub(super) fn of(json: &'v Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(it) => Self::Boolean(*it),
            Json::Number(number) => match number.as_i64() {
                Some(integer) => Self::Integer(integer),
                None => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::String(text) => Self::Text(Cow::Borrowed(text)),
            Json::Array(elements) => Self::Elements(elements),
            Json::Object(fields) => Self::Object(fields),
        }
    }

    /// The name of its type in CEL.
    pub(super) fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "a bool",
            Self::Integer(_) => "an int",
            Self::Double(_) => "a double",
            Self::Text(_) => "a string",
            Self::Elements(_) | Self::List(_) => "a list",
            Self::Object(_) | Self::Map(_) => "a map",
            Self::Optional(_) => "an optional value",
        }
    }

    /// The value of a field of a map, none if the map does not have it; or the value itself, if it is no map.
    pub(super) fn into_field(self, field: &str) -> Result<Option<Self>, Self> {
        match self {
            Self::Object(fields) => Ok(fields.get(field).map(Self::of)),
            Self::Map(entries) => Ok(entries.into_iter().find(|(name, _)| name == field).map(|(_, value)| value)),
            other => Err(other),
        }
    }

    /// Whether a map has a field; none if it is no map.
    pub(super) fn has_field(&self, field: &str) -> Option<bool> {
        match self {
            Self::Object(fields) => Some(fields.contains_key(field)),
            Self::Map(entries) => Some(entries.iter().any(|(name, _)| name == field)),
            _ => None,
        }
    }

    /// A value that was made from JSON that nobody keeps.
    pub(super) fn owned(json: Json) -> Self {
        match json {
            Json::String(text) => Self::Text(Cow::Owned(text)),
            Json::Array(elements) => Self::List(elements.into_iter().map(Self::owned).collect()),
            Json::Object(fields) => {
                Self::Map(fields.into_iter().map(|(name, value)| (Cow::Owned(name), Self::owned(value))).collect())
            }
            Json::Null => Self::Null,
            Json::Bool(it) => Self::Boolean(it),
            Json::Number(number) => match number.as_i64() {
                Some(integer) => Self::Integer(integer),
                None => Self::Double(number.as_f64().unwrap_or(f64::NAN)),
            },
        }
    }

    /// The steps to make JSON of it: it is copied as a whole.
    pub(super) fn json_steps(&self) -> usize {
        match self {
            Self::Text(text) => steps_of_text(text),
            Self::Elements(elements) => elements.iter().map(json_steps).sum::<usize>() + 1,
            Self::Object(fields) => fields.values().map(json_steps).sum::<usize>() + fields.len() + 1,
            Self::List(elements) => elements.iter().map(Self::json_steps).sum::<usize>() + 1,
            Self::Map(entries) => entries.iter().map(|(_, value)| value.json_steps() + 1).sum::<usize>() + 1,
            Self::Optional(Some(value)) => value.json_steps(),
            _ => 1,
        }
    }

    /// It as JSON; none for what JSON does not have. What is optional and has no value is none.
    pub(super) fn into_json(self) -> Option<Json> {
        Some(match self {
            Self::Null => Json::Null,
            Self::Boolean(it) => Json::Bool(it),
            Self::Integer(it) => Json::from(it),
            Self::Double(it) => Json::Number(serde_json::Number::from_f64(it)?),
            Self::Text(text) => Json::String(text.into_owned()),
            Self::Elements(elements) => Json::Array(elements.to_vec()),
            Self::Object(fields) => Json::Object(fields.clone()),
            Self::List(elements) => Json::Array(elements.into_iter().map(Self::into_json).collect::<Option<_>>()?),
            Self::Map(entries) => {
                let entries = entries.into_iter().map(|(name, value)| Some((name.into_owned(), value.into_json()?)));
                Json::Object(entries.collect::<Option<_>>()?)
            }
            Self::Optional(value) => value?.into_json()?,
        })
    }

    /// The elements of a list, or the names of an object's fields; none for other values.
    pub(super) fn into_elements(self) -> Option<Box<dyn Iterator<Item = Self> + 'v>> {
        match self {
            Self::Elements(elements) => Some(Box::new(elements.iter().map(Self::of))),
            Self::List(elements) => Some(Box::new(elements.into_iter())),
            Self::Map(entries) => Some(Box::new(entries.into_iter().map(|(name, _)| Self::Text(name)))),
            Self::Object(fields) => Some(Box::new(fields.keys().map(|name| Self::Text(Cow::Borrowed(name.as_str()))))),
            _ => None,
        }
    }

    /// The steps to copy it.
    pub(super) fn copy_steps(&self) -> usize {
        match self {
            Self::Text(Cow::Owned(text)) => steps_of_text(text),
            Self::List(elements) => elements.iter().map(Self::copy_steps).sum::<usize>() + 1,
            Self::Map(entries) => {
                entries.iter().map(|(name, value)| steps_of_text(name) + value.copy_steps()).sum::<usize>() + 1
            }
            Self::Optional(Some(value)) => value.copy_steps() + 1,
            _ => 1,
        }
    }

    /// Which of two numbers, texts or booleans is smaller; none for other values.
    pub(super) fn compare(&self, other: &Self) -> Option<Ordering> {
        match (self, other) {
            (Self::Integer(one), Self::Integer(other)) => Some(one.cmp(other)),
            (Self::Double(one), Self::Double(other)) => one.partial_cmp(other),
            #[allow(clippy::cast_precision_loss)]
            (Self::Integer(one), Self::Double(other)) => (*one as f64).partial_cmp(other),
            #[allow(clippy::cast_precision_loss)]
            (Self::Double(one), Self::Integer(other)) => one.partial_cmp(&(*other as f64)),
            (Self::Text(one), Self::Text(other)) => Some(one.cmp(other)),
            (Self::Boolean(one), Self::Boolean(other)) => Some(one.cmp(other)),
            _ => None,
        }
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Integer(_) | Self::Double(_))
    }
}

/// The steps to copy or compare a text.
pub(super) fn steps_of_text(text: &str) -> usize {
    text.len() / BYTES_OF_STEP + 1
}

/// The steps to copy a value in the object.
fn json_steps(json: &Json) -> usize {
    match json {
        Json::String(text) => steps_of_text(text),
        Json::Array(elements) => elements.iter().map(json_steps).sum::<usize>() + 1,
        Json::Object(fields) => fields.values().map(json_steps).sum::<usize>() + fields.len() + 1,
        _ => 1,
    }
}
