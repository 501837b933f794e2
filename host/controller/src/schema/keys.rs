//! The keys of a list and what they say about elements. Pure.

use std::{borrow::Cow, fmt::Write};

use serde_json::Value;

use super::Key;

/// The fields that tell the elements of a list apart (`x-kubernetes-list-map-keys`).
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

    /// Whether an element has any of them.
    pub fn are_in(self, item: &Value) -> bool {
        self.names().any(|name| item.get(name).is_some())
    }

    /// Whether two elements are the same one: both say the same of every key, or only the server does, which fills in
    /// defaults such as `TCP`.
    pub fn same(self, desired: &Value, live: &Value) -> bool {
        self.names().all(|name| desired.get(name).is_none() || desired.get(name) == live.get(name))
    }

    /// What a message calls an element: the value of its first key.
    pub fn title(self, item: &Value) -> Cow<'_, str> {
        let first = self.names().find_map(|name| item.get(name));
        first.map_or(Cow::Borrowed("?"), plain)
    }

    /// All keys of an element, with defaults where it leaves them out: `port=80, protocol=TCP`.
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

/// A text without its quotes; other values as JSON.
pub(crate) fn plain(value: &Value) -> Cow<'_, str> {
    value.as_str().map_or_else(|| Cow::Owned(value.to_string()), Cow::Borrowed)
}
