//! Matches a label selector in its text form, for the fake lookups. The host has its own parser. A requirement that this one
//! cannot read matches nothing.

use serde_json::Value;

/// Whether `labels` fulfil every requirement of `selector`.
pub(crate) fn matches(selector: &str, labels: &Value) -> bool {
    requirements(selector).iter().all(|requirement| fulfils(requirement, labels))
}

/// Splits at the commas outside parentheses.
fn requirements(selector: &str) -> Vec<&str> {
    let mut depth = 0;
    let parts = selector.split(|c| {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        c == ',' && depth == 0
    });
    parts.map(str::trim).filter(|part| !part.is_empty()).collect()
}

fn fulfils(requirement: &str, labels: &Value) -> bool {
    let label = |key: &str| labels.get(key.trim()).and_then(Value::as_str);
    if let Some((key, values)) = requirement.split_once(" notin ") {
        return !label(key).is_some_and(|value| contains(values, value));
    }
    if let Some((key, values)) = requirement.split_once(" in ") {
        return label(key).is_some_and(|value| contains(values, value));
    }
    if let Some((key, value)) = requirement.split_once("!=") {
        return label(key) != Some(value.trim());
    }
    if let Some((key, value)) = requirement.split_once('=') {
        return label(key) == Some(value.trim_start_matches('=').trim());
    }
    match requirement.strip_prefix('!') {
        Some(key) => label(key).is_none(),
        None => label(requirement).is_some(),
    }
}

fn contains(values: &str, value: &str) -> bool {
    let inner = values.trim().trim_start_matches('(').trim_end_matches(')');
    inner.split(',').any(|listed| listed.trim() == value)
}

#[cfg(test)]
mod tests {
    use super::matches;
    use serde_json::json;

    #[test]
    fn understands_the_forms_of_a_selector() {
        let labels = json!({ "app": "web", "tier": "a" });
        let cases = [
            ("", true),
            ("app=web", true),
            ("app==web,tier!=b", true),
            ("app=db", false),
            ("tier in (a, b),app", true),
            ("tier notin (a, b)", false),
            ("other notin (a)", true),
            ("!app", false),
            ("!other", true),
            ("other", false),
        ];
        for (selector, expected) in cases {
            assert_eq!(matches(selector, &labels), expected, "{selector}");
        }
    }
}
