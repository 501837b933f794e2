//! Finds duplicate elements in keyed lists and sets. The API server answers an apply of them with an internal error (500) that
//! does not say what is wrong. Pure.

use std::{collections::BTreeMap, fmt};

use serde_json::Value;

use super::{Cursor, ListType, Schema, plain, pointer};

/// An element that a list has more than once.
#[derive(Clone, Debug, PartialEq)]
pub struct Duplicate {
    /// JSON pointer of the list.
    pub list: String,
    /// The keys of the element, `port=80, protocol=TCP`, or the element itself where the list is a set.
    pub key: String,
}

impl fmt::Display for Duplicate {
    /// `/spec/ports has port=80, protocol=TCP more than once`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} has {} more than once", self.list, self.key)
    }
}

/// Finds the duplicate elements of all lists in an object.
pub fn duplicates(desired: &Value, schema: &Schema) -> Vec<Duplicate> {
    let mut search = Search { path: Vec::new(), found: Vec::new() };
    search.value(desired, schema.root());
    search.found
}

struct Search {
    path: Vec<String>,
    found: Vec<Duplicate>,
}

impl Search {
    fn value(&mut self, value: &Value, at: Cursor<'_>) {
        match value {
            Value::Object(object) => object.iter().for_each(|(key, value)| self.below(key, value, at.field(key))),
            Value::Array(items) => self.list(items, at),
            _ => {}
        }
    }

    fn list(&mut self, items: &[Value], at: Cursor<'_>) {
        match at.list_type() {
            ListType::Atomic => {}
            ListType::Set => self.repeated(items.iter().map(|item| plain(item).into_owned())),
            ListType::Map(keys) => {
                self.repeated(items.iter().filter(|item| keys.are_in(item)).map(|item| keys.describe(item)))
            }
        }
        for (index, item) in items.iter().enumerate() {
            self.below(&index.to_string(), item, at.items());
        }
    }

    fn below(&mut self, key: &str, value: &Value, at: Cursor<'_>) {
        if at.is_known() && !at.is_free_form() {
            self.path.push(key.to_owned());
            self.value(value, at);
            self.path.pop();
        }
    }

    fn repeated(&mut self, elements: impl Iterator<Item = String>) {
        let mut times = BTreeMap::<String, usize>::new();
        elements.for_each(|element| *times.entry(element).or_default() += 1);
        let list = pointer(&self.path);
        let repeated = times.into_iter().filter(|(_, times)| *times > 1);
        self.found.extend(repeated.map(|(key, _)| Duplicate { list: list.clone(), key }));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{super::samples, *};

    fn found(schema: &Schema, desired: &Value) -> Vec<String> {
        duplicates(desired, schema).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn finds_duplicates_in_keyed_lists_and_sets_only() {
        let env = |names: &[&str]| {
            let env: Vec<_> = names.iter().map(|name| json!({"name": name})).collect();
            json!({"spec": {"template": {"spec": {"containers": [{"name": "a", "env": env}]}}}})
        };
        let repeated_env = "/spec/template/spec/containers/0/env has name=A more than once";
        let ports = |ports: Value| json!({"spec": {"ports": ports}});
        let repeated_port = "/spec/ports has port=80, protocol=TCP more than once";
        let gadget = |field: &str, value: Value| json!({"spec": {field: value}});
        let cases = [
            ("apps/v1", "Deployment", env(&["A", "B"]), vec![]),
            ("apps/v1", "Deployment", env(&["A", "B", "A", "A"]), vec![repeated_env]),
            ("v1", "Service", ports(json!([{"port": 80}, {"port": 80, "protocol": "UDP"}])), vec![]),
            ("v1", "Service", ports(json!([{"port": 80}, {"port": 80, "protocol": "TCP"}])), vec![repeated_port]),
            ("v1", "Service", ports(json!([{}, {}, 1, 1])), vec![]),
            ("example.com/v1", "Gadget", gadget("tags", json!(["a", "b"])), vec![]),
            ("example.com/v1", "Gadget", gadget("tags", json!(["a", "a"])), vec!["/spec/tags has a more than once"]),
            ("example.com/v1", "Gadget", gadget("args", json!(["a", "a"])), vec![]),
            ("example.com/v1", "Gadget", gadget("anything", json!(["a", "a"])), vec![]),
            (
                "example.com/v1",
                "Gadget",
                gadget("listeners", json!([{"port": 1}, {"host": "*", "port": 1}, {"host": "a", "port": 1}])),
                vec!["/spec/listeners has host=*, port=1 more than once"],
            ),
        ];
        for (api_version, kind, desired, expected) in cases {
            assert_eq!(found(&samples::schema(api_version, kind), &desired), expected, "{desired}");
            if kind != "Gadget" {
                assert_eq!(found(Schema::built_in(api_version, kind), &desired), expected, "no schema: {desired}");
            }
        }
    }
}
