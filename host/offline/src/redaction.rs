//! Takes what is in Secrets out of objects: in the Secrets themselves, and wherever else the same bytes appear. Pure; it knows no case and no
//! plugin.
//!
//! Each value becomes a token, the same one wherever the value appears, so that what the objects have to do with each other stays. A value
//! that is JSON keeps its shape, for a plugin may read it; its texts and numbers become tokens.
//!
//! # Caveats
//!
//! - A value of one or two bytes is found where it is a whole text, and one of up to five where it stands as a word: elsewhere it would be found
//!   everywhere.
//! - A value that is also the name of one of the objects stays where it is a name, or nothing would be found by its name.
//! - Digests of a value are not recognised, and neither are numbers and booleans outside of Secrets.

use std::collections::{BTreeMap, BTreeSet};

use base64::{
    Engine,
    engine::{
        DecodePaddingMode,
        general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD},
    },
};
use serde_json::{Map, Value};

/// From this length on, a value is found within any text.
const ANYWHERE: usize = 6;

/// From this length on, a value is found where it stands as a word.
const AS_WORD: usize = 3;

/// The fields by which objects find each other, as paths from an object.
const IDENTITY: [&str; 6] =
    ["/apiVersion", "/kind", "/metadata/name", "/metadata/namespace", "/metadata/uid", "/metadata/ownerReferences"];

/// Base64 as others write it: with padding or without.
const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const ALPHABETS: [GeneralPurpose; 2] = [
    GeneralPurpose::new(&base64::alphabet::STANDARD, LENIENT),
    GeneralPurpose::new(&base64::alphabet::URL_SAFE, LENIENT),
];

/// What is in Secrets, and the tokens for it.
#[derive(Debug, Default)]
pub struct Redaction {
    /// The token of each value.
    tokens: BTreeMap<Vec<u8>, String>,
    /// The values to look for in texts, with their tokens: the longest first, for one may contain another.
    texts: Vec<(String, String)>,
    /// The names of objects.
    names: BTreeSet<String>,
}

impl Redaction {
    /// Learns what is in the Secrets among objects, and the names of all of them.
    pub fn of<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut redaction = Self::default();
        for object in objects {
            redaction.names.extend(
                ["/metadata/name", "/metadata/namespace"]
                    .iter()
                    .filter_map(|path| object.pointer(path).and_then(Value::as_str).map(str::to_owned)),
            );
            if is_secret(object) {
                values(object).iter().for_each(|value| redaction.learn(value));
            }
        }
        let texts = redaction.tokens.iter().filter_map(|(value, token)| {
            let text = std::str::from_utf8(value).ok()?;
            (!redaction.names.contains(text)).then(|| (text.to_owned(), token.clone()))
        });
        redaction.texts = texts.collect();
        redaction.texts.sort_by_key(|(text, _)| std::cmp::Reverse(text.len()));
        redaction
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there is nothing to take out.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Puts tokens in the place of all values in an object.
    pub fn redact_object(&self, object: &mut Value) {
        if is_secret(object) {
            self.redact_secret(object);
        }
        let kept: Vec<_> = IDENTITY.iter().map(|path| object.pointer(path).cloned()).collect();
        self.redact(object);
        for (path, kept) in IDENTITY.iter().zip(kept) {
            if let (Some(place), Some(kept)) = (object.pointer_mut(path), kept) {
                *place = kept;
            }
        }
    }

    /// Puts tokens in the place of all values in the texts of something else.
    pub fn redact(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.redacted(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.redact(field)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// Whether a text has a value in it that is long enough to be recognised: one that is in a name, or in the name of a field.
    pub fn is_left_in(&self, text: &str) -> bool {
        self.texts.iter().any(|(value, _)| value.len() >= ANYWHERE && forms(value).any(|form| text.contains(&*form)))
    }

    /// Learns a value: its texts and numbers if it is JSON, and else all of it, its lines, and what is assigned in them.
    fn learn(&mut self, value: &[u8]) {
        match json(value) {
            Some(json) => leaves(&json).iter().for_each(|leaf| self.add(leaf.as_bytes())),
            None => {
                self.add(value);
                let text = std::str::from_utf8(value).unwrap_or_default();
                let parts = text.lines().map(str::trim).flat_map(|line| [Some(line), assigned(line)]).flatten();
                parts.filter(|part| part.len() >= ANYWHERE).for_each(|part| self.add(part.as_bytes()));
            }
        }
    }

    fn add(&mut self, value: &[u8]) {
        let number = self.tokens.len() + 1;
        if !value.is_empty() {
            self.tokens.entry(value.to_owned()).or_insert_with(|| format!("redacted-{number}"));
        }
    }

    fn redact_secret(&self, secret: &mut Value) {
        for field in ["data", "stringData"] {
            let Some(fields) = secret.get_mut(field).and_then(Value::as_object_mut) else { continue };
            for value in fields.values_mut().filter(|value| value.is_string()) {
                let text = value.as_str().unwrap_or_default();
                *value = match field {
                    "data" => STANDARD.encode(self.token_of(&decoded(text))).into(),
                    _ => self.token_of(text.as_bytes()).into(),
                };
            }
        }
    }

    /// What stands for a value of a Secret.
    fn token_of(&self, value: &[u8]) -> String {
        let Some(mut json) = json(value) else { return self.token(value) };
        self.redact_leaves(&mut json);
        json.to_string()
    }

    fn redact_leaves(&self, json: &mut Value) {
        match json {
            Value::Array(items) => items.iter_mut().for_each(|item| self.redact_leaves(item)),
            Value::Object(fields) => fields.values_mut().for_each(|field| self.redact_leaves(field)),
            leaf => {
                if let Some(text) = leaf_text(leaf) {
                    *leaf = self.token(text.as_bytes()).into();
                }
            }
        }
    }

    fn token(&self, value: &[u8]) -> String {
        self.tokens.get(value).cloned().unwrap_or_default()
    }

    fn redacted(&self, text: &str) -> String {
        let mut redacted = self.redacted_base64(text).unwrap_or_else(|| text.to_owned());
        for (value, token) in &self.texts {
            redacted = match value.len() {
                ANYWHERE.. => forms(value).fold(redacted, |text, form| text.replace(&*form, token)),
                AS_WORD.. => replace_words(&redacted, value, token),
                _ if redacted == *value => token.clone(),
                _ => redacted,
            };
        }
        redacted
    }

    /// A text in base64 that has a value in it; none if it is none.
    fn redacted_base64(&self, text: &str) -> Option<String> {
        for alphabet in &ALPHABETS {
            let Ok(bytes) = alphabet.decode(text.trim()) else { continue };
            if let Some(token) = self.tokens.get(&bytes).filter(|_| bytes.len() >= AS_WORD) {
                return Some(alphabet.encode(token));
            }
            let is_long = |value: &&Vec<u8>| value.len() >= ANYWHERE && value.len() <= bytes.len();
            let mut long = self.tokens.keys().filter(is_long);
            if long.any(|value| bytes.windows(value.len()).any(|window| window == value)) {
                let inner = String::from_utf8(bytes).ok().map(|text| self.redacted(&text));
                return Some(alphabet.encode(inner.unwrap_or_else(|| "redacted".to_owned())));
            }
        }
        None
    }
}

/// The ways in which a text may write a value.
fn forms(value: &str) -> impl Iterator<Item = String> {
    let quoted = Value::from(value).to_string();
    let escaped = quoted[1..quoted.len() - 1].to_owned();
    let percent: String = value.bytes().map(percent_encoded).collect();
    let other = [escaped, percent].into_iter().filter(move |form| form != value);
    std::iter::once(value.to_owned()).chain(other.collect::<Vec<_>>())
}

/// A byte as in a URL.
fn percent_encoded(byte: u8) -> String {
    match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    }
}

/// Puts a token in the place of a value where no letter and no digit is beside it.
fn replace_words(text: &str, value: &str, token: &str) -> String {
    let (mut replaced, mut rest) = (String::with_capacity(text.len()), text);
    let mut before: Option<char> = None;
    while let Some(at) = rest.find(value) {
        let (head, tail) = (&rest[..at], &rest[at + value.len()..]);
        let is_apart = |beside: Option<char>| beside.is_none_or(|letter| !letter.is_alphanumeric());
        replaced.push_str(head);
        let is_word = is_apart(head.chars().next_back().or(before)) && is_apart(tail.chars().next());
        replaced.push_str(if is_word { token } else { value });
        before = value.chars().next_back();
        rest = tail;
    }
    replaced + rest
}

fn is_secret(object: &Value) -> bool {
    object["apiVersion"] == "v1" && object["kind"] == "Secret"
}

/// The values of a Secret, as bytes.
fn values(secret: &Value) -> Vec<Vec<u8>> {
    let nothing = Map::new();
    let fields = |name: &str| secret.get(name).and_then(Value::as_object).unwrap_or(&nothing).values();
    let data = fields("data").filter_map(|value| value.as_str().map(decoded));
    let texts = fields("stringData").filter_map(|value| Some(value.as_str()?.as_bytes().to_owned()));
    data.chain(texts).collect()
}

/// The bytes of a value in `data`. What is no base64, which no API server takes, stands for itself.
fn decoded(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap_or_else(|_| text.as_bytes().to_owned())
}

/// A value that is a JSON object or list.
fn json(value: &[u8]) -> Option<Value> {
    serde_json::from_slice(value).ok().filter(|json: &Value| json.is_object() || json.is_array())
}

/// The texts and numbers in JSON.
fn leaves(json: &Value) -> Vec<String> {
    match json {
        Value::Array(items) => items.iter().flat_map(leaves).collect(),
        Value::Object(fields) => fields.values().flat_map(leaves).collect(),
        leaf => leaf_text(leaf).into_iter().collect(),
    }
}

fn leaf_text(leaf: &Value) -> Option<String> {
    match leaf {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// What a line assigns to a name, as in `PASSWORD="x"` and `password: x`.
fn assigned(line: &str) -> Option<&str> {
    let (_, value) = line.split_once(['=', ':'])?;
    Some(value.trim().trim_matches(['"', '\'']))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn secret(data: &[(&str, &str)]) -> Value {
        let data: Map<_, _> =
            data.iter().map(|(key, value)| ((*key).to_owned(), STANDARD.encode(value).into())).collect();
        json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "login", "namespace": "shop"}, "data": data})
    }

    #[test]
    fn a_value_is_taken_out_wherever_it_appears() {
        let redaction = Redaction::of([&secret(&[("password", "pa\"ss wörd"), ("pin", "4711"), ("on", "1")])]);
        let token = redaction.token("pa\"ss wörd".as_bytes());
        let (pin, on) = (redaction.token(b"4711"), redaction.token(b"1"));
        for (text, expected) in [
            ("pa\"ss wörd".to_owned(), token.clone()),
            ("redis://:pa\"ss wörd@host".to_owned(), format!("redis://:{token}@host")),
            (r#"{"password":"pa\"ss wörd"}"#.to_owned(), format!(r#"{{"password":"{token}"}}"#)),
            ("https://u:pa%22ss%20w%C3%B6rd@host".to_owned(), format!("https://u:{token}@host")),
            (STANDARD.encode("pa\"ss wörd"), STANDARD.encode(&token)),
            (STANDARD.encode("u:pa\"ss wörd"), STANDARD.encode(format!("u:{token}"))),
            ("pin=4711;".to_owned(), format!("pin={pin};")),
            ("port 14711 and 4711".to_owned(), format!("port 14711 and {pin}")),
            ("1".to_owned(), on),
            ("nginx:1.29".to_owned(), "nginx:1.29".to_owned()),
            ("nothing".to_owned(), "nothing".to_owned()),
        ] {
            assert_eq!(redaction.redacted(&text), expected, "{text}");
        }
    }

    #[test]
    fn a_secret_keeps_its_shape_and_objects_keep_their_names() {
        let config = r#"{"auths":{"registry":{"auth":"dXNlcjpodW50ZXIyMg==","port":443}}}"#;
        let mut secret = secret(&[(".dockerconfigjson", config), ("user", "login")]);
        let mut object = json!({
            "apiVersion": "example.com/v1", "kind": "Website", "metadata": {"name": "web-dXNlcjpodW50ZXIyMg=="},
            "spec": {"secretName": "login", "auth": "dXNlcjpodW50ZXIyMg==", "other": "dXNlcjpodW50ZXIyMg== too"},
        });
        let redaction = Redaction::of([&secret, &object]);
        redaction.redact_object(&mut secret);
        redaction.redact_object(&mut object);
        let shown = |key: &str| decoded(secret["data"][key].as_str().unwrap_or_default());
        let shape: Value = serde_json::from_slice(&shown(".dockerconfigjson")).unwrap_or_default();
        let auth = shape["auths"]["registry"]["auth"].as_str().unwrap_or_default();
        assert!(auth.starts_with("redacted-") && shape["auths"]["registry"]["port"] != 443, "{shape}");
        assert!(String::from_utf8_lossy(&shown("user")).starts_with("redacted-"));
        assert_eq!(object["spec"]["secretName"], "login");
        assert_eq!(object["spec"]["auth"], auth);
        assert_eq!(object["spec"]["other"], format!("{auth} too"));
        assert_eq!(object["metadata"]["name"], "web-dXNlcjpodW50ZXIyMg==");
        assert!(redaction.is_left_in(&object.to_string()), "nobody tells of the name");
    }

    #[test]
    fn lines_and_what_they_assign_are_taken_out_each_for_itself() {
        let redaction = Redaction::of([&secret(&[(".env", "USER=administrator\nPASSWORD=\"correct horse\"\n")])]);
        for text in ["administrator", "USER=administrator", "say correct horse!"] {
            let redacted = redaction.redacted(text);
            assert!(redacted.contains("redacted-") && !redaction.is_left_in(&redacted), "{redacted}");
        }
    }

    /// Whatever the value and the text around it, nothing of six bytes or more is left of it.
    #[test]
    fn no_long_value_is_left_in_any_text() {
        let mut seed = 0x5eed_u64;
        let mut next = |below: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(seed >> 33).unwrap_or_default() % below
        };
        let letters: Vec<char> = "ab1-_ \"\\/%:=\u{e9}\u{1f600}\n".chars().collect();
        for _ in 0..2_000 {
            let mut text = |length: usize| -> String { (0..length).map(|_| letters[next(letters.len())]).collect() };
            let (first, second, around) = (text(8), text(7), text(5));
            let redaction = Redaction::of([&secret(&[("first", &first), ("second", &second)])]);
            let whole = format!("{around}{first}{around}{second}{first}");
            for text in [whole.clone(), STANDARD.encode(&whole), Value::from(whole.as_str()).to_string()] {
                let redacted = redaction.redacted(&text);
                let plain = String::from_utf8(decoded(&redacted)).unwrap_or_default();
                for shown in [&redacted, &plain] {
                    assert!(!redaction.is_left_in(shown), "{first:?} or {second:?} is in {shown:?}, of {text:?}");
                }
            }
        }
    }
}
