//! What two answers must have in common. UIDs, resource versions, addresses and times differ between servers; the order in which
//! they appear does not. Messages are for people and are not compared.

use std::collections::HashMap;

use serde_json::{Map, Value, json};

use super::side::Answer;

/// The values of one server that stand for something, in the order of their appearance.
#[derive(Debug, Default)]
pub struct Tokens {
    known: HashMap<(&'static str, String), usize>,
    uids: Vec<String>,
}

impl Tokens {
    fn token(&mut self, kind: &'static str, value: &str) -> Value {
        let next = self.known.keys().filter(|(known, _)| *known == kind).count();
        let number = *self.known.entry((kind, value.to_owned())).or_insert(next);
        format!("<{kind} {number}>").into()
    }

    /// An answer in a form that does not depend on the server.
    pub fn of_answer(&mut self, answer: &Answer) -> Value {
        json!({"code": answer.code, "body": self.of(&answer.body)})
    }

    /// A body, or the event of a watch, in such a form.
    pub fn of(&mut self, body: &Value) -> Value {
        self.find_uids(body);
        if body["kind"] == "Status" {
            return self.status(body);
        }
        self.value("", body)
    }

    fn find_uids(&mut self, value: &Value) {
        match value {
            Value::Object(map) => {
                for (name, value) in map {
                    if let Some(uid) = value.as_str().filter(|text| name == "uid" && text.len() > 8)
                        && !self.uids.iter().any(|known| known == uid)
                    {
                        self.uids.push(uid.to_owned());
                    }
                    self.find_uids(value);
                }
            }
            Value::Array(list) => list.iter().for_each(|value| self.find_uids(value)),
            _ => {}
        }
    }

    fn status(&mut self, body: &Value) -> Value {
        let mut kept: Map<String, Value> = ["status", "reason", "code"]
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), body.get(*name)?.clone())))
            .collect();
        let mut details = body["details"].clone();
        if let Some(causes) = details["causes"].as_array() {
            let mut causes: Vec<_> =
                causes.iter().map(|cause| format!("{} {}", text(&cause["reason"]), text(&cause["field"]))).collect();
            causes.sort();
            // The real server checks some things twice.
            causes.dedup();
            details["causes"] = json!(causes);
        }
        kept.insert("details".to_owned(), self.value("", &details));
        kept.into()
    }

    fn value(&mut self, name: &str, value: &Value) -> Value {
        match (name, value) {
            ("creationTimestamp" | "deletionTimestamp" | "time", Value::String(_)) => "<time>".into(),
            ("continue", Value::String(_)) => "<continue>".into(),
            ("nodePort", Value::Number(_)) => "<port>".into(),
            ("uid", Value::String(uid)) => self.token("uid", uid),
            ("resourceVersion", Value::String(version)) => self.token("version", version),
            (_, Value::String(text)) if text.starts_with("10.0.") => self.token("address", text),
            (_, Value::String(text)) => self.text(text).into(),
            (_, Value::Array(list)) => {
                let mut list: Vec<_> = list.iter().map(|value| self.value("", value)).collect();
                if name == "managedFields" {
                    list.sort_by_key(|entry| {
                        ["operation", "manager", "subresource", "apiVersion"]
                            .map(|field| text(&entry[field]).to_owned())
                    });
                }
                list.into()
            }
            (_, Value::Object(map)) => {
                let is_list = map.contains_key("items") && map.contains_key("metadata");
                let fields = map.iter().map(|(name, value)| {
                    // The resource version of a list is that of the whole server.
                    let value = match (name.as_str(), is_list) {
                        ("metadata", true) => list_metadata(value),
                        _ => self.value(name, value),
                    };
                    (self.text(name), value)
                });
                fields.collect::<Map<_, _>>().into()
            }
            (_, other) => other.clone(),
        }
    }

    fn text(&self, text: &str) -> String {
        let mut text = if text.starts_with("gen-") { "gen-<any>".to_owned() } else { text.to_owned() };
        for (index, uid) in self.uids.iter().enumerate() {
            if text.contains(uid.as_str()) {
                text = text.replace(uid.as_str(), &format!("<uid {index}>"));
            }
        }
        text
    }
}

fn list_metadata(metadata: &Value) -> Value {
    json!({"continue": metadata["continue"].as_str().map(str::is_empty), "remainingItemCount": metadata["remainingItemCount"]})
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Where two values differ, one line for each place.
pub fn differences(real: &Value, simulated: &Value) -> Vec<String> {
    let mut found = Vec::new();
    compare("", real, simulated, &mut found);
    found
}

fn compare(path: &str, real: &Value, simulated: &Value, found: &mut Vec<String>) {
    match (real, simulated) {
        (Value::Object(a), Value::Object(b)) => {
            let names: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
            for name in names {
                let path = format!("{path}/{name}");
                match (a.get(name), b.get(name)) {
                    (Some(a), Some(b)) => compare(&path, a, b, found),
                    (a, b) => found.push(line(&path, a, b)),
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{path}/{index}"), a, b, found);
            }
        }
        (a, b) if a == b => {}
        (a, b) => found.push(line(path, Some(a), Some(b))),
    }
}

fn line(path: &str, real: Option<&Value>, simulated: Option<&Value>) -> String {
    let shown = |value: Option<&Value>| value.map_or_else(|| "nothing".to_owned(), Value::to_string);
    format!("{path}: real {}, simulated {}", shown(real), shown(simulated))
}
