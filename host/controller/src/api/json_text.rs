//! Any JSON, kept as the text that it is: nobody but a plugin reads it, and it may be nested more deeply than a parser follows.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Any JSON as text.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JsonText(Box<RawValue>);

impl JsonText {
    /// The text.
    pub fn text(&self) -> &str {
        self.0.get()
    }
}

impl PartialEq for JsonText {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl From<&serde_json::Value> for JsonText {
    fn from(value: &serde_json::Value) -> Self {
        // The text of a value is JSON.
        Self(RawValue::from_string(value.to_string()).unwrap_or_else(|_| RawValue::NULL.to_owned()))
    }
}
