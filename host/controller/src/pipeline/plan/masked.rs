//! Hides the values of Secrets in what is printed or logged. Pure.

use std::borrow::Cow;

use pilothouse_engine::contract::KindRef;
use serde_json::{Value, json};

use super::diff::Difference;
use crate::{labels, plugin::is_secret, schema::pointer};

/// What is printed in the place of a value.
const HIDDEN: &str = "(hidden)";

/// The fields of a Secret that are shown. Any other one may hold values, also one whose name is misspelt.
const SHOWN: [&str; 4] = ["apiVersion", "kind", "metadata", "type"];

/// The field of a Secret that is shown if it is what it has to be.
const IMMUTABLE: &str = "immutable";

/// Annotations that tell of the values: a copy of the whole Secret, as `kubectl apply` leaves it, and the digest of what was applied,
/// from which a short value can be found by trying.
const TELLING: [&str; 2] = ["kubectl.kubernetes.io/last-applied-configuration", labels::APPLIED];

/// A body without the values of a Secret. The keys stay.
pub fn body(kind: &KindRef, body: &Value) -> Value {
    let mut body = body.clone();
    if is_secret(kind) {
        for (field, value) in body.as_object_mut().into_iter().flatten() {
            if !is_shown(field, value) {
                hide(value);
            }
        }
        if let Some(annotations) = body.pointer_mut("/metadata/annotations") {
            hide_telling(annotations);
        }
    }
    body
}

/// The value of a field, without what a Secret holds.
pub fn value(kind: &KindRef, path: &str, value: &Value) -> Value {
    let mut value = value.clone();
    let field = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    if is_secret(kind) && (!is_shown(field, &value) || is_telling(path)) {
        hide(&mut value);
    }
    if is_secret(kind) && path == "/metadata/annotations" {
        hide_telling(&mut value);
    }
    value
}

/// The digest of a body. None for a Secret.
pub fn digest(kind: &KindRef, digest: Option<String>) -> Option<String> {
    digest.filter(|_| !is_secret(kind))
}

/// Differences without what a Secret holds.
pub fn differences<'d>(kind: &KindRef, differences: &'d [Difference]) -> Cow<'d, [Difference]> {
    if !is_secret(kind) {
        return differences.into();
    }
    let masked = |Difference { path, desired, live }: &Difference| Difference {
        path: path.clone(),
        desired: value(kind, path, desired),
        live: value(kind, path, live),
    };
    differences.iter().map(masked).collect::<Vec<_>>().into()
}

fn is_shown(field: &str, value: &Value) -> bool {
    SHOWN.contains(&field) || (field == IMMUTABLE && value.is_boolean())
}

fn is_telling(path: &str) -> bool {
    TELLING.iter().any(|annotation| path == pointer(&["metadata", "annotations", annotation]))
}

fn hide_telling(annotations: &mut Value) {
    for annotation in TELLING {
        if let Some(value) = annotations.get_mut(annotation) {
            hide(value);
        }
    }
}

fn hide(value: &mut Value) {
    match value {
        Value::Object(fields) => fields.values_mut().for_each(hide),
        Value::Null => {}
        other => *other = json!(HIDDEN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_values_of_a_secret_are_hidden_and_its_keys_are_not() {
        let secret = KindRef::new("v1", "Secret");
        let given = json!({"metadata": {"name": "s"}, "type": "Opaque", "immutable": true, "data": {"a": "eA=="}, "stringdata": {"b": "x"}});
        let hidden = json!({
            "metadata": {"name": "s"}, "type": "Opaque", "immutable": true, "data": {"a": HIDDEN}, "stringdata": {"b": HIDDEN},
        });
        assert_eq!(body(&secret, &given), hidden);
        assert_eq!(body(&KindRef::new("example.com/v1", "Secret"), &given), given);
        for (path, shown) in [
            ("/data", json!({"a": HIDDEN})),
            ("/data/a", json!({"a": HIDDEN})),
            ("/dataset", json!({"a": HIDDEN})),
            ("/immutable", json!({"a": HIDDEN})),
            ("/metadata/labels", json!({"a": "x"})),
            ("/metadata/annotations", json!({"a": "x"})),
            ("/metadata/annotations/kubectl.kubernetes.io~1last-applied-configuration", json!({"a": HIDDEN})),
            ("/metadata/annotations/pilothouse.dev~1applied", json!({"a": HIDDEN})),
        ] {
            assert_eq!(value(&secret, path, &json!({"a": "x"})), shown, "{path}");
        }
        assert_eq!(value(&secret, "/data/a", &Value::Null), Value::Null, "that there was none is no secret");
    }

    #[test]
    fn what_tells_of_the_values_of_a_secret_is_hidden_too() {
        let secret = KindRef::new("v1", "Secret");
        for annotation in TELLING {
            let annotations = json!({annotation: "x", "b": "x"});
            assert_eq!(value(&secret, "/metadata/annotations", &annotations), json!({annotation: HIDDEN, "b": "x"}));
            let given = json!({"metadata": {"annotations": annotations}});
            assert_eq!(body(&secret, &given)["metadata"]["annotations"][annotation], HIDDEN);
        }
        let given = || Some("0123".to_owned());
        assert_eq!((digest(&secret, given()), digest(&KindRef::new("v1", "ConfigMap"), given())), (None, given()));
    }
}
