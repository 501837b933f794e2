//! Moves `stringData` of a Secret into `data`. The API server does the same and drops `stringData`, so a desired `stringData` could
//! neither be compared with the live Secret nor be removed again. And says what is wrong with the values of a Secret without quoting them, as
//! the API server would. Pure.

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
    prelude::BASE64_STANDARD,
};
use pilothouse_engine::contract::KindRef;
use serde_json::{Map, Value};

use crate::plugin::is_secret;

/// As the API server decodes it: bits that are left over need not be zero.
const DECODER: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireCanonical),
);

/// The fields of a Secret whose values are not of the type that they have to be, none of any other kind. The API server quotes such a value
/// where it refuses it.
pub fn wrong_values(kind: &KindRef, body: &Value) -> Vec<String> {
    if !is_secret(kind) {
        return Vec::new();
    }
    let fields = ["data", "stringData"].into_iter().filter_map(|field| Some((field, body.get(field)?)));
    let mut wrong: Vec<_> = fields.flat_map(|(field, value)| wrong_values_of(field, value)).collect();
    // Whoever confuses fields may have written a value there.
    wrong.extend(body.get("type").filter(|kind| !kind.is_string()).map(|_| "type is no text".to_owned()));
    wrong.extend(
        body.get("immutable").filter(|it| !it.is_boolean()).map(|_| "immutable is neither true nor false".to_owned()),
    );
    wrong
}

fn wrong_values_of(field: &str, value: &Value) -> Vec<String> {
    let Value::Object(values) = value else { return vec![format!("{field} is no map")] };
    let wrong = |(key, value): (&String, &Value)| match value.as_str() {
        None => Some(format!("{field}.{key} is no text")),
        Some(text) if field == "data" && !is_base64(text) => Some(format!("{field}.{key} is not in base64")),
        Some(_) => None,
    };
    values.iter().filter_map(wrong).collect()
}

/// Whether the API server can decode it. It passes over the ends of lines.
fn is_base64(text: &str) -> bool {
    DECODER.decode(text.replace(['\r', '\n'], "")).is_ok()
}

/// Moves `stringData` of a Secret into `data`, where it overwrites existing keys, as in the API server.
pub(super) fn encode_string_data(kind: &KindRef, body: &mut Map<String, Value>) {
    if !is_secret(kind) {
        return;
    }
    let is_of_texts = |value: &Value| value.as_object().is_some_and(|map| map.values().all(Value::is_string));
    // A value of the wrong type stays, so that the API server refuses it.
    if !body.get("stringData").is_some_and(is_of_texts) || !body.get("data").is_none_or(Value::is_object) {
        return;
    }
    let Some(Value::Object(texts)) = body.remove("stringData") else { return };
    let data = body.entry("data").or_insert_with(|| Value::Object(Map::new()));
    for (key, text) in texts {
        data[key] = BASE64_STANDARD.encode(text.as_str().unwrap_or_default()).into();
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn string_data_becomes_data() {
        let secret = KindRef::new("v1", "Secret");
        for (kind, given, expected) in [
            (
                &secret,
                json!({"stringData": {"a": "x"}, "data": {"a": "eQ==", "b": "eg=="}}),
                json!({"data": {"a": "eA==", "b": "eg=="}}),
            ),
            (&secret, json!({"stringData": {"a": ""}}), json!({"data": {"a": ""}})),
            (&secret, json!({"stringData": {"a": 1}}), json!({"stringData": {"a": 1}})),
            (&secret, json!({"stringData": {"a": "x"}, "data": 1}), json!({"stringData": {"a": "x"}, "data": 1})),
            (
                &KindRef::new("example.com/v1", "Secret"),
                json!({"stringData": {"a": "x"}}),
                json!({"stringData": {"a": "x"}}),
            ),
        ] {
            let mut body = given.as_object().cloned().unwrap_or_default();
            encode_string_data(kind, &mut body);
            assert_eq!(Value::Object(body), expected, "{given}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_without_the_value() {
        let (secret, other) = (KindRef::new("v1", "Secret"), KindRef::new("v1", "ConfigMap"));
        for (body, expected) in [
            (json!({"data": {"a": "eA==", "b": "eB==", "c": "eA\n==", "d": ""}, "stringData": {"e": "x"}}), vec![]),
            (json!({"data": {"a": 1, "b": "hunter2!"}}), vec!["data.a is no text", "data.b is not in base64"]),
            (json!({"data": "hunter2", "stringData": {"a": true}}), vec!["data is no map", "stringData.a is no text"]),
            (json!({"type": "Opaque", "immutable": false}), vec![]),
            (
                json!({"type": {"a": "x"}, "immutable": "hunter2"}),
                vec!["type is no text", "immutable is neither true nor false"],
            ),
        ] {
            assert_eq!(wrong_values(&secret, &body), expected, "{body}");
            assert!(wrong_values(&other, &body).is_empty(), "{body}");
        }
    }
}
