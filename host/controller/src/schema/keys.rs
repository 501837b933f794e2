//! The keys of a list (`x-kubernetes-list-map-keys`) and the comparison of elements by them. Pure.

use std::{borrow::Cow, fmt::Write};

use serde_json::Value;

use super::Key;

/// The keys of a list: the fields that identify an element.
#[derive(Clone, Copy, Debug)]
pub struct Keys<'s>(pub(super) &'s [Key]);

impl<'s> Keys<'s> {
    /// Their names.
    pub fn names(self) -> impl Iterator<Item = &'s str> {
        self.0.iter().map(|key| &*key.name)
    }

    /// Whether a field is one of them.
    pub fn include(self, field: &str) -> bool {
        self.names().any(|name| name == field)
    }

    /// Whether an element has at least one of them.
    pub fn are_in(self, item: &Value) -> bool {
        self.names().any(|name| item.get(name).is_some())
    }

    /// Whether an element has all of them, or their defaults, so that there is no other one that could be meant.
    pub fn identify(self, item: &Value) -> bool {
        self.0.iter().all(|key| !key.default.is_null() || item.get(&*key.name).is_some())
    }

    /// Whether two elements are the same one: both say the same of every key. A key that the desired one leaves out has its default,
    /// such as `TCP`, which the API server fills in; where no default is known, any value will do.
    pub fn same(self, desired: &Value, live: &Value) -> bool {
        self.0.iter().all(|key| match (desired.get(&*key.name), live.get(&*key.name)) {
            (Some(desired), live) => Some(desired) == live,
            (None, Some(live)) => key.default.is_null() || *live == key.default,
            (None, None) => true,
        })
    }

    /// The name of an element in a JSON pointer: the value of its first key.
    pub fn title(self, item: &Value) -> Cow<'_, str> {
        let first = self.names().find_map(|name| item.get(name));
        first.map_or(Cow::Borrowed("?"), plain)
    }

    /// All keys of an element, including defaults, for messages: `port=80, protocol=TCP`.
    pub fn describe(self, item: &Value) -> String {
        self.0.iter().fold(String::new(), |mut text, key| {
            let comma = if text.is_empty() { "" } else { ", " };
            let value = item.get(&*key.name).unwrap_or(&key.default);
            // Writing to a String does not fail.
            write!(text, "{comma}{}={}", key.name, plain(value)).ok();
            text
        })
    }
}

/// A string without quotes, any other value as JSON.
pub(crate) fn plain(value: &Value) -> Cow<'_, str> {
    value.as_str().map_or_else(|| Cow::Owned(value.to_string()), Cow::Borrowed)
}
