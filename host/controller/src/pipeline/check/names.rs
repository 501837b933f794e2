//! Checks names, labels and annotations of children. Refuses those that would break a request, such as a name with `?`, and those
//! that every API server refuses, with a message that names the field. Pure.

use pilothouse_engine::contract::KindRef;
use serde_json::{Map, Value};

use super::refusal::Refusal;
use crate::labels;

/// The characters of a name besides letters and digits: those of a path segment (RFC 3986) without `%`. They cover DNS names and
/// the names of RBAC objects.
const NAME_CHARACTERS: &[u8] = b"-._~!$&'()*+,;=:@";

/// The most bytes of a name (DNS subdomain, RFC 1123).
const MAX_NAME_BYTES: usize = 253;

/// The most bytes of a DNS label, of a label's value, and of a key without its prefix.
const MAX_LABEL_BYTES: usize = 63;

/// Refuses a name that is not safe in the path of a request.
pub(super) fn check_name(kind: &KindRef, name: &str) -> Result<(), Refusal> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || NAME_CHARACTERS.contains(&byte);
    let is_name = name.len() <= MAX_NAME_BYTES && name.bytes().all(is_allowed) && !matches!(name, "." | "..");
    refuse_unless(
        is_name,
        || format!("{} '{name}'", kind.kind),
        || format!("metadata.name '{name}' is not a name that an object can have"),
    )
}

/// Refuses a namespace that is not a DNS label.
pub(super) fn check_namespace(child: &str, namespace: &str) -> Result<(), Refusal> {
    refuse_unless(
        namespace.len() <= MAX_LABEL_BYTES && is_dns_word(namespace),
        || child.to_owned(),
        || format!("metadata.namespace '{namespace}' is not the name of a namespace"),
    )
}

/// Refuses invalid labels and annotations.
pub(super) fn check_metadata(body: &Map<String, Value>, child: &str) -> Result<(), Refusal> {
    let metadata = body.get("metadata").and_then(Value::as_object);
    for field in ["labels", "annotations"] {
        let value = metadata.and_then(|metadata| metadata.get(field)).filter(|value| !value.is_null());
        let Some(value) = value else { continue };
        let what = || child.to_owned();
        refuse_unless(value.is_object(), what, || format!("metadata.{field} is not a map of texts"))?;
        for (key, value) in value.as_object().into_iter().flatten() {
            let text = value.as_str();
            // Null counts as absent: `drop_nulls` removes it after this check.
            let is_text = text.is_some() || value.is_null();
            refuse_unless(is_text, what, || format!("metadata.{field} has '{key}', which is not a text"))?;
            refuse_unless(is_key(key), what, || format!("metadata.{field} has '{key}', which is not a key"))?;
            let is_its_own = !labels::is_hosts_own(key);
            refuse_unless(is_its_own, what, || format!("metadata.{field} has '{key}', which belongs to the host"))?;
            let is_value = field != "labels" || text.is_none_or(is_label_value);
            refuse_unless(is_value, what, || {
                format!("metadata.labels has '{key}', whose value '{}' cannot be a label's", text.unwrap_or_default())
            })?;
        }
    }
    Ok(())
}

fn refuse_unless(is_fine: bool, what: impl Fn() -> String, why: impl Fn() -> String) -> Result<(), Refusal> {
    if is_fine { Ok(()) } else { Err(Refusal::Malformed { what: what(), why: why() }) }
}

/// Whether a key is a qualified name: a name, optionally after a DNS subdomain and a slash.
fn is_key(key: &str) -> bool {
    let (prefix, name) = key.split_once('/').map_or((None, key), |(prefix, name)| (Some(prefix), name));
    let is_prefix = |prefix: &str| prefix.len() <= MAX_NAME_BYTES && prefix.split('.').all(is_dns_word);
    is_word(name) && !name.is_empty() && prefix.is_none_or(is_prefix)
}

fn is_label_value(value: &str) -> bool {
    value.is_empty() || is_word(value)
}

fn is_word(text: &str) -> bool {
    text.len() <= MAX_LABEL_BYTES
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        && is_bounded(text)
}

/// Whether a text is a label of a DNS name, of any length.
fn is_dns_word(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-') && is_bounded(text)
}

/// Whether a text begins and ends with a letter or a digit.
fn is_bounded(text: &str) -> bool {
    let is_end = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric());
    is_end(text.bytes().next()) && is_end(text.bytes().next_back())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_must_be_safe_in_a_path() {
        let kind = KindRef::new("v1", "ConfigMap");
        for (name, expected) in [
            ("web", true),
            ("system:controller:foo", true),
            ("a.b-c", true),
            ("ann@example.com", true),
            ("a?dryRun=All", false),
            ("my app", false),
            ("a/b", false),
            ("a%2Fb", false),
            ("a#b", false),
            ("ä", false),
            ("..", false),
            (&"a".repeat(254), false),
        ] {
            assert_eq!(check_name(&kind, name).is_ok(), expected, "{name}");
        }
        for (namespace, expected) in
            [("ns", true), ("a-1", true), ("A", false), ("a.b", false), ("-a", false), ("", false)]
        {
            assert_eq!(check_namespace("x", namespace).is_ok(), expected, "{namespace}");
        }
    }

    #[test]
    fn labels_and_annotations_must_be_strings_with_valid_keys() {
        for (metadata, expected) in [
            (json!({}), true),
            (json!({"labels": null, "annotations": {"a/b": "any text at all"}}), true),
            (json!({"labels": {"app.kubernetes.io/name": "web", "empty": "", "dropped": null}}), true),
            (json!({"labels": {"pilothouse.dev/plugin": "x"}}), false),
            (json!({"annotations": {"pilothouse.dev/on-removal": "keep"}}), false),
            (json!({"labels": "x"}), false),
            (json!({"annotations": []}), false),
            (json!({"labels": {"a": 1}}), false),
            (json!({"labels": {"a": "two words"}}), false),
            (json!({"labels": {"a": "x".repeat(64)}}), false),
            (json!({"labels": {"a b": "x"}}), false),
            (json!({"labels": {"A.com/b": "x"}}), false),
            (json!({"annotations": {"": "x"}}), false),
            (json!({"annotations": {"a/b/c": "x"}}), false),
        ] {
            let body = json!({"metadata": metadata});
            let body = body.as_object().cloned().unwrap_or_default();
            assert_eq!(check_metadata(&body, "ConfigMap 'a'").is_ok(), expected, "{metadata}");
        }
    }
}
