//! ConfigMaps, Secrets, ServiceAccounts, Roles and their bindings: kinds that hold data.

use serde_json::Value;

use super::{
    Strategy,
    edit::{default_to, object_at},
};
use crate::api_server::{causes::Causes, names::NameRule, names::is_config_key};

/// The most bytes that a ConfigMap or a Secret can hold.
const MAX_BYTES: usize = 1024 * 1024;

/// ConfigMaps.
pub(super) static CONFIG_MAP: Strategy = Strategy {
    validate: |object, _, causes| {
        check_keys(object, "data", causes);
        check_keys(object, "binaryData", causes);
        for key in object["binaryData"].as_object().into_iter().flatten().map(|(key, _)| key) {
            if object["data"].get(key).is_some() {
                causes.invalid(format!("data[{key}]"), &key.as_str().into(), "duplicate of key present in binaryData");
            }
        }
        check_size(object, &["data", "binaryData"], "", causes);
    },
    validate_update: |new, old, _, causes| check_immutable(new, old, &["data", "binaryData"], causes),
    ..Strategy::USUAL
};

/// Secrets.
pub(super) static SECRET: Strategy = Strategy {
    default: |object| {
        let given = object.as_object_mut().and_then(|object| object.remove("stringData"));
        for (key, text) in given.as_ref().and_then(Value::as_object).into_iter().flatten() {
            if let Some(data) = object_at(object, &["data"]) {
                data.insert(key.clone(), base64(text.as_str().unwrap_or_default().as_bytes()).into());
            }
        }
        if let Some(object) = object_at(object, &[]) {
            default_to(object, "type", "Opaque");
        }
    },
    validate: |object, _, causes| {
        check_keys(object, "data", causes);
        check_size(object, &["data"], "data", causes);
    },
    validate_update: |new, old, _, causes| {
        if new["type"] != old["type"] {
            causes.invalid("type", &new["type"], "field is immutable");
        }
        check_immutable(new, old, &["data"], causes);
    },
    ..Strategy::USUAL
};

/// ServiceAccounts.
pub(super) static SERVICE_ACCOUNT: Strategy = Strategy { gone: super::Gone::Object, ..Strategy::USUAL };

/// Roles and their bindings.
pub(super) static ROLE: Strategy = Strategy { names: NameRule::PathSegment, create_on_update: true, ..Strategy::USUAL };

fn check_keys(object: &Value, field: &str, causes: &mut Causes) {
    for key in object[field].as_object().into_iter().flatten().map(|(key, _)| key) {
        if !is_config_key(key) {
            causes.invalid(
                format!("{field}[{key}]"),
                &key.as_str().into(),
                "a valid config key must consist of some characters",
            );
        }
    }
}

fn check_size(object: &Value, fields: &[&str], field: &'static str, causes: &mut Causes) {
    let values = fields.iter().flat_map(|field| object[field].as_object().into_iter().flatten());
    let size: usize = values.map(|(_, value)| value.as_str().unwrap_or_default().len()).sum();
    if size > MAX_BYTES {
        causes.too_long(field, MAX_BYTES as u64);
    }
}

fn check_immutable(new: &Value, old: &Value, fields: &[&str], causes: &mut Causes) {
    if old["immutable"] != true {
        return;
    }
    if new["immutable"] != true {
        causes.forbidden("immutable", "field is immutable when `immutable` is set");
    }
    for field in fields {
        if new[field] != old[field] {
            causes.forbidden(*field, "field is immutable when `immutable` is set");
        }
    }
}

fn base64(bytes: &[u8]) -> String {
    const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let byte = |index: usize| u32::from(chunk.get(index).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for index in 0..4 {
            let character = CHARACTERS.get((bits >> (18 - 6 * index) & 63) as usize).copied().unwrap_or_default();
            text.push(if index <= chunk.len() { char::from(character) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_base64() {
        for (text, expected) in [("", ""), ("a", "YQ=="), ("ab", "YWI="), ("abc", "YWJj"), ("abcd", "YWJjZA==")] {
            assert_eq!(base64(text.as_bytes()), expected);
        }
    }
}
