//! One environment variable of a container.

use serde_json::{Value, json};

/// A variable with a plain value.
pub fn variable(name: &str, value: &str) -> Value {
    json!({ "name": name, "value": value })
}
