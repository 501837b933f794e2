//! Moves `stringData` of a Secret into `data`. The API server does the same and drops `stringData`, so a desired `stringData` could
//! neither be compared with the live Secret nor be removed again. Pure.

use base64::{Engine, prelude::BASE64_STANDARD};
use pilothouse_engine::contract::KindRef;
use serde_json::{Map, Value};

/// Moves `stringData` of a Secret into `data`, where it overwrites existing keys, as in the API server.
pub(super) fn encode_string_data(kind: &KindRef, body: &mut Map<String, Value>) {
    if kind.kind != "Secret" || !kind.group().is_empty() {
        return;
    }
    let is_of_texts = |value: &Value| value.as_object().is_some_and(|map| map.values().all(Value::is_string));
    // A value of the wrong type stays, so that the API server refuses it with its own message.
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
}
