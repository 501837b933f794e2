//! What the value of a custom resource must satisfy beyond its type, and the causes that a server gives where it does not. Rules in
//! CEL are left out but for `self == oldSelf`.

use regex::Regex;
use serde_json::Value;

/// The rules for one value.
#[derive(Debug, Default)]
pub struct Rules {
    /// The fields that an object must have.
    pub required: Vec<Box<str>>,
    /// The values that are possible.
    pub one_of: Vec<Value>,
    /// The least number.
    pub minimum: Option<f64>,
    /// The greatest number.
    pub maximum: Option<f64>,
    /// The least characters of a text.
    pub min_length: Option<u64>,
    /// The most characters of a text.
    pub max_length: Option<u64>,
    /// The least elements of a list.
    pub min_items: Option<u64>,
    /// The most elements of a list.
    pub max_items: Option<u64>,
    /// The least fields of an object.
    pub min_properties: Option<u64>,
    /// The most fields of an object.
    pub max_properties: Option<u64>,
    /// What a text must match.
    pub pattern: Option<Regex>,
    /// Whether the value may not change.
    pub immutable: bool,
}

impl Rules {
    /// Whether there is any rule.
    pub fn is_empty(&self) -> bool {
        self.required.is_empty()
            && self.one_of.is_empty()
            && self.minimum.is_none()
            && self.maximum.is_none()
            && self.min_length.is_none()
            && self.max_length.is_none()
            && self.min_items.is_none()
            && self.max_items.is_none()
            && self.min_properties.is_none()
            && self.max_properties.is_none()
            && self.pattern.is_none()
            && !self.immutable
    }
}
