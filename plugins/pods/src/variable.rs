//! One environment variable of a container, and texts that the kubelet expands in those.

use serde_json::{Value, json};

/// A variable with a plain value.
pub fn variable(name: &str, value: &str) -> Value {
    json!({ "name": name, "value": value })
}

/// A text that the kubelet leaves as it is: in arguments and in values of variables it expands `$(NAME)`, and `$$` is a plain `$`.
pub fn literal(text: &str) -> String {
    text.replace('$', "$$")
}
