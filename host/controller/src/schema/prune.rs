//! Removes undeclared fields from a status. The API server refuses a whole apply because of one undeclared field, so the rest of
//! the status would not be written either. Pure.

use serde_json::{Map, Value};

use super::{Cursor, Schema, pointer};

/// Removes the fields of a status that its kind does not declare, and returns their JSON pointers, such as `/status/phase`.
/// Without a schema all fields stay.
pub fn prune_status(status: &mut Map<String, Value>, schema: Option<&Schema>) -> Vec<String> {
    let Some(schema) = schema else { return Vec::new() };
    let mut pruning = Pruning::default();
    if schema.root().allows("status") {
        pruning.object(status, schema.root().field("status"));
        pruning.below("status", 0);
    } else if !status.is_empty() {
        status.clear();
        pruning.dropped.push(vec!["status".to_owned()]);
    }
    pruning.pointers()
}

/// The dropped fields, each as the keys from the field up to the place where the search is. So nothing is written down about fields
/// that stay, which are nearly all.
#[derive(Default)]
struct Pruning {
    dropped: Vec<Vec<String>>,
}

impl Pruning {
    fn object(&mut self, object: &mut Map<String, Value>, at: Cursor<'_>) {
        object.retain(|key, value| {
            if !at.allows(key) {
                self.dropped.push(vec![key.clone()]);
                return false;
            }
            let before = self.dropped.len();
            self.value(value, at.field(key));
            self.below(key, before);
            true
        });
    }

    fn value(&mut self, value: &mut Value, at: Cursor<'_>) {
        match value {
            Value::Object(object) => self.object(object, at),
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let before = self.dropped.len();
                    self.value(item, at.items());
                    self.below(&index, before);
                }
            }
            _ => {}
        }
    }

    /// All but the first `before` fields are below this key.
    fn below(&mut self, key: &(impl ToString + ?Sized), before: usize) {
        self.dropped.iter_mut().skip(before).for_each(|path| path.push(key.to_string()));
    }

    fn pointers(self) -> Vec<String> {
        let pointer = |mut path: Vec<String>| {
            path.reverse();
            pointer(&path)
        };
        self.dropped.into_iter().map(pointer).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::samples, *};

    fn pruned(status: &Value) -> (Value, Vec<String>) {
        let mut status = status.as_object().cloned().unwrap_or_default();
        let dropped = prune_status(&mut status, Some(&samples::gadget()));
        (Value::Object(status), dropped)
    }

    #[test]
    fn removes_undeclared_fields_and_returns_their_pointers() {
        let cases = [
            ("all declared", json!({"phase": "Ready", "ready": 1}), json!({"phase": "Ready", "ready": 1}), vec![]),
            ("one field", json!({"phase": "Ready", "a/b": 1}), json!({"phase": "Ready"}), vec!["/status/a~1b"]),
            (
                "inside a list",
                json!({"members": [{"name": "a"}, {"name": "b", "age": 1}]}),
                json!({"members": [{"name": "a"}, {"name": "b"}]}),
                vec!["/status/members/1/age"],
            ),
            ("in a map", json!({"counts": {"any": 1}}), json!({"counts": {"any": 1}}), vec![]),
            ("free-form", json!({"raw": {"any": {"deep": 1}}}), json!({"raw": {"any": {"deep": 1}}}), vec![]),
            ("of another type", json!({"members": {"a": 1}}), json!({"members": {"a": 1}}), vec![]),
        ];
        for (name, status, expected, dropped) in cases {
            assert_eq!(pruned(&status), (expected, dropped.into_iter().map(str::to_owned).collect()), "{name}");
        }
    }

    #[test]
    fn pruning_twice_removes_nothing_more() {
        let mut random = samples::Random::new(5);
        for _ in 0..500 {
            let (once, _) = pruned(&random.value(5));
            assert_eq!(pruned(&once), (once.clone(), vec![]));
        }
    }

    #[test]
    fn nothing_is_pruned_without_a_schema() {
        let status = json!({"phase": "Ready"}).as_object().cloned().unwrap_or_default();
        for schema in [None, Some(Schema::built_in("example.com/v1", "Web")), Some(Schema::built_in("v1", "Pod"))] {
            let mut pruned = status.clone();
            assert!(prune_status(&mut pruned, schema).is_empty());
            assert_eq!(pruned, status);
        }
    }

    #[test]
    fn a_kind_without_a_status_loses_all_of_it() {
        let mut status = json!({"phase": "Ready"}).as_object().cloned().unwrap_or_default();
        assert_eq!(prune_status(&mut status, Some(&samples::schema("v1", "ConfigMap"))), ["/status"]);
        assert!(status.is_empty());
    }
}
