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
            Self::Object(_) => "a map",
        }
    }

    /// The elements of a list, or the names of an object's fields; none for other values.
    pub(super) fn into_elements(self) -> Option<Box<dyn Iterator<Item = Self> + 'v>> {
        match self {
            Self::Elements(elements) => Some(Box::new(elements.iter().map(Self::of))),
            Self::List(elements) => Some(Box::new(elements.into_iter())),
            Self::Object(fields) => Some(Box::new(fields.keys().map(|name| Self::Text(Cow::Borrowed(name.as_str()))))),
            _ => None,
        }
    }

    /// The steps to copy it.
    pub(super) fn copy_steps(&self) -> usize {
        match self {
            Self::Text(Cow::Owned(text)) => steps_of_text(text),
            Self::List(elements) => elements.iter().map(Self::copy_steps).sum::<usize>() + 1,
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
