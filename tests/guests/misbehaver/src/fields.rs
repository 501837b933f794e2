//! What a test can say in the spec of a `Misbehaver`. All but `act` have defaults.

use pilothouse_sdk::{ImmutablePolicy, Object, Options, RemovalPolicy};
use serde::Deserialize;
use std::collections::BTreeMap;

/// The object.
pub type Misbehaver = Object<Spec, serde_json::Value>;

/// What to do.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Spec {
    /// What to do; see `act`.
    pub act: String,
    /// Name of the child or of the object looked up; default: the object's own name.
    pub name: Option<String>,
    /// A namespace other than the object's own, for children and lookups.
    pub namespace: Option<String>,
    /// Data of the child.
    #[serde(default)]
    pub data: BTreeMap<String, String>,
    /// A text: message, reason, selector, condition type and so on.
    pub text: Option<String>,
    /// A number: seconds, count, value.
    pub number: Option<u32>,
    /// Delete and create a child anew when it cannot change.
    #[serde(default)]
    pub recreate: bool,
    /// Keep children that are no longer returned.
    #[serde(default)]
    pub keep: bool,
    /// Fields of the child that others set.
    #[serde(default)]
    pub unmanaged: Vec<String>,
}

impl Spec {
    /// The text, or what the act has for it.
    pub fn text<'s>(&'s self, default: &'s str) -> &'s str {
        self.text.as_deref().unwrap_or(default)
    }

    /// The number, or what the act has for it.
    pub fn number(&self, default: u32) -> u32 {
        self.number.unwrap_or(default)
    }

    /// How the host shall treat the child.
    pub fn options(&self) -> Options {
        Options {
            on_immutable: if self.recreate { ImmutablePolicy::Recreate } else { ImmutablePolicy::Fail },
            on_removal: if self.keep { RemovalPolicy::Keep } else { RemovalPolicy::Delete },
            unmanaged: self.unmanaged.clone(),
            ..Options::default()
        }
    }
}
