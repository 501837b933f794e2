//! Checks of label selectors, and of labels, as several kinds have them.

use serde_json::Value;

use crate::api_server::{
    causes::Causes,
    names::{is_label_value, is_qualified_name},
};

/// Checks a label selector.
pub(super) fn check_selector(selector: &Value, path: &str, causes: &mut Causes) {
    check_labels(&selector["matchLabels"], &format!("{path}.matchLabels"), causes);
    for (index, expression) in selector["matchExpressions"].as_array().into_iter().flatten().enumerate() {
        let path = format!("{path}.matchExpressions[{index}]");
        let has_values = expression["values"].as_array().is_some_and(|values| !values.is_empty());
        match expression["operator"].as_str().unwrap_or_default() {
            "In" | "NotIn" if !has_values => {
                causes.required(format!("{path}.values"), "must be specified when `operator` is 'In' or 'NotIn'");
            }
            "Exists" | "DoesNotExist" if has_values => {
                causes.forbidden(
                    format!("{path}.values"),
                    "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
                );
            }
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => causes.invalid(format!("{path}.operator"), &expression["operator"], "not a valid selector operator"),
        }
        let key = expression["key"].as_str().unwrap_or_default();
        if !is_qualified_name(key) {
            causes.invalid(format!("{path}.key"), &expression["key"], "must be a qualified name");
        }
    }
}

/// Checks labels.
pub(super) fn check_labels(labels: &Value, path: &str, causes: &mut Causes) {
    for (key, value) in labels.as_object().into_iter().flatten() {
        if !is_qualified_name(key) {
            causes.invalid(path, &key.as_str().into(), "must be a qualified name");
        }
        if value.as_str().is_some_and(|value| !is_label_value(value)) {
            causes.invalid(path, value, "must be a label value");
        }
    }
}

/// Whether a selector is empty, and so selects everything.
pub(super) fn is_empty(selector: &Value) -> bool {
    let has = |name: &str| match &selector[name] {
        Value::Object(object) => !object.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => false,
    };
    !has("matchLabels") && !has("matchExpressions")
}

/// Whether a selector selects labels.
pub(super) fn selects(selector: &Value, labels: &Value) -> bool {
    let by_label = selector["matchLabels"].as_object().into_iter().flatten().all(|(key, value)| labels[key] == *value);
    let by_expression = |expression: &Value| {
        let value = expression["key"].as_str().and_then(|key| labels.get(key));
        let is_in =
            value.is_some_and(|value| expression["values"].as_array().is_some_and(|values| values.contains(value)));
        match expression["operator"].as_str().unwrap_or_default() {
            "In" => is_in,
            "NotIn" => !is_in,
            "Exists" => value.is_some(),
            "DoesNotExist" => value.is_none(),
            _ => false,
        }
    };
    by_label && selector["matchExpressions"].as_array().into_iter().flatten().all(by_expression)
}
