//! Hides the values of Secrets in what is printed. Pure.

use pilothouse_engine::contract::KindRef;
use serde_json::{Value, json};

/// What is printed in the place of a value.
const HIDDEN: &str = "(hidden)";

/// The fields of a Secret that hold its values.
const FIELDS: [&str; 2] = ["data", "stringData"];

/// A body without the values of a Secret. The keys stay.
pub fn body(kind: &KindRef, body: &Value) -> Value {
    let mut body = body.clone();
    if is_secret(kind) {
        for field in FIELDS {
            if let Some(value) = body.get_mut(field) {
                hide(value);
            }
        }
        // A copy of the whole Secret, as `kubectl apply` leaves it.
        if let Some(annotations) = body.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut) {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
    body
}

/// The value of a field, without what a Secret holds.
pub fn value(kind: &KindRef, path: &str, value: &Value) -> Value {
    let mut value = value.clone();
    let below = |field: &str| path.strip_prefix('/').and_then(|path| path.strip_prefix(field));
    let is_hidden = |field: &&str| below(field).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if is_secret(kind) && FIELDS.iter().any(is_hidden) {
        hide(&mut value);
    }
    value
}

fn hide(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(hide),
        Value::Null => {}
        other => *other = json!(HIDDEN),
    }
}

fn is_secret(kind: &KindRef) -> bool {
    kind.kind == "Secret" && kind.group().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_a_secret_are_hidden_and_its_keys_are_not() {
        let secret = KindRef::new("v1", "Secret");
        let given =
            json!({"metadata": {"name": "s"}, "type": "Opaque", "data": {"a": "eA=="}, "stringData": {"b": "x"}});
        let hidden = json!({
            "metadata": {"name": "s"}, "type": "Opaque", "data": {"a": HIDDEN}, "stringData": {"b": HIDDEN},
        });
        assert_eq!(body(&secret, &given), hidden);
        assert_eq!(body(&KindRef::new("example.com/v1", "Secret"), &given), given);
        for (path, shown) in [
            ("/data", json!({"a": HIDDEN})),
            ("/data/a", json!({"a": HIDDEN})),
            ("/dataset", json!({"a": "x"})),
            ("/metadata/labels", json!({"a": "x"})),
        ] {
            assert_eq!(value(&secret, path, &json!({"a": "x"})), shown, "{path}");
        }
        assert_eq!(value(&secret, "/data/a", &Value::Null), Value::Null, "that there was none is no secret");
    }
}
