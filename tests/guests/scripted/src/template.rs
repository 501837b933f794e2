//! Copies values into an answer: into its children and its status, wherever an object like one of these stands in the place of a
//! value.
//!
//! | in the answer | becomes |
//! |---|---|
//! | `{"$found": "WORD", "at": "/data/key"}` | the value there of what the lookup of that word found; null if there is none |
//! | `{"$names": "WORD"}` | a text with `NAMESPACE/NAME` of all that the lookup found, with commas between them |
//! | `{"$readiness": "KIND/NAME"}` | a text with status and reason of that live child, a ConfigMap or a Deployment |
//! | `{"$refused": true}` | a text with `KIND/NAME REASON` of all children that were refused, with commas between them |
//! | `{"$next": "NAME", "at": "/data/key"}` | a text with the number after the one there in the live child, a ConfigMap of that name |

use crate::lookups::{ConfigMap, Deployment, Found};
use crate::{Answer, Scripted};
use pilothouse_sdk::Request;
use serde_json::{Map, Value};

/// What values are copied from.
pub struct Template<'a> {
    /// What the lookups found.
    pub found: &'a Found,
    /// The request, with the live children.
    pub request: &'a Request<Scripted>,
}

impl Template<'_> {
    /// An answer with all values in it.
    pub fn fill(&self, mut answer: Answer) -> Answer {
        for child in answer.children.iter_mut().flatten() {
            self.fill_value(&mut child.object);
        }
        answer.status.iter_mut().for_each(|status| self.fill_value(status));
        answer
    }

    fn fill_value(&self, value: &mut Value) {
        match value {
            Value::Object(fields) => match self.copied(fields) {
                Some(copied) => *value = copied,
                None => fields.values_mut().for_each(|field| self.fill_value(field)),
            },
            Value::Array(items) => items.iter_mut().for_each(|item| self.fill_value(item)),
            _ => {}
        }
    }

    fn copied(&self, fields: &Map<String, Value>) -> Option<Value> {
        let text = |key: &str| fields.get(key).and_then(Value::as_str);
        let at = text("at").unwrap_or_default();
        if let Some(word) = text("$found") {
            return Some(self.found.get(word).pointer(at).cloned().unwrap_or_default());
        }
        if let Some(word) = text("$names") {
            return Some(names(self.found.get(word)).into());
        }
        if let Some(child) = text("$readiness") {
            return Some(self.readiness(child).into());
        }
        if fields.contains_key("$refused") {
            return Some(self.refused().into());
        }
        text("$next").map(|name| self.next(name, at).into())
    }

    fn readiness(&self, child: &str) -> String {
        let readiness = match child.split_once('/') {
            Some(("Deployment", name)) => self.request.readiness::<Deployment>(name),
            Some((_, name)) => self.request.readiness::<ConfigMap>(name),
            None => None,
        };
        readiness.map_or_else(|| "none".to_owned(), |found| format!("{:?} {}", found.status, found.reason))
    }

    fn refused(&self) -> String {
        let refused = self.request.refused().iter();
        let words = refused.map(|child| format!("{}/{} {}", child.kind.kind, child.name, child.reason));
        words.collect::<Vec<_>>().join(",")
    }

    fn next(&self, name: &str, at: &str) -> String {
        let live = self.request.child::<ConfigMap>(name).ok().flatten().map(Value::from).unwrap_or_default();
        let number: u64 = live.pointer(at).and_then(|value| value.as_str()?.parse().ok()).unwrap_or_default();
        (number + 1).to_string()
    }
}

fn names(found: &Value) -> String {
    let objects = found.as_array().map_or_else(|| std::slice::from_ref(found), Vec::as_slice);
    let name = |object: &Value| {
        let metadata = object.get("metadata")?;
        let namespace = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
        Some(format!("{namespace}/{}", metadata.get("name")?.as_str()?))
    };
    objects.iter().filter_map(name).collect::<Vec<_>>().join(",")
}
