//! Whether a JSON value has all that another one asks for. Pure.

use serde_json::Value;

/// The first place at which `live` lacks what is wanted; none if it has all of it. Lists must have the same length.
pub fn missing(wanted: &Value, live: &Value) -> Option<String> {
    match (wanted, live) {
        (Value::Object(wanted), Value::Object(live)) => wanted.iter().find_map(|(field, wanted)| {
            let found = live.get(field).unwrap_or(&Value::Null);
            missing(wanted, found).map(|place| format!("/{field}{place}"))
        }),
        (Value::Array(wanted), Value::Array(live)) if wanted.len() == live.len() => {
            let pairs = wanted.iter().zip(live).enumerate();
            pairs
                .into_iter()
                .find_map(|(index, (wanted, live))| missing(wanted, live).map(|place| format!("/{index}{place}")))
        }
        _ if wanted == live => None,
        _ => Some(format!(" is {live} and not {wanted}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_not_wanted_may_be_there_but_what_is_wanted_must() {
        for (wanted, live, expected) in [
            (json!({"a": 1}), json!({"a": 1, "b": 2}), None),
            (json!({"a": {"b": [{"c": 1}]}}), json!({"a": {"b": [{"c": 1, "d": 2}]}}), None),
            (json!({"a": {"b": 1}}), json!({"a": {"b": 2}}), Some("/a/b is 2 and not 1")),
            (json!({"a": [1]}), json!({"a": [1, 2]}), Some("/a is [1,2] and not [1]")),
            (json!({"a": 1}), json!({}), Some("/a is null and not 1")),
        ] {
            assert_eq!(missing(&wanted, &live).as_deref(), expected, "{wanted} {live}");
        }
    }
}
