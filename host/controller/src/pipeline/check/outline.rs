//! The outline of a body: which fields it has, whatever their values are. Two bodies with one outline differ in values alone, so that
//! nothing has to be taken away when one replaces the other. Pure.
//!
//! What counts as a field is what it is to server-side apply: an element of a keyed list is known by its keys, a set by its values, and
//! what has one owner as a whole is one field.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::schema::{Cursor, Keys, ListType, Schema};

/// The outline of a body, as eight hexadecimal digits. The same in each process: it is kept in an annotation.
pub(super) fn outline(body: &Value, schema: &Schema) -> String {
    let mut outline = Outline(Sha256::new());
    outline.value(body, schema.root());
    let hash = outline.0.finalize();
    format!("{:08x}", u32::from_be_bytes(hash.first_chunk().copied().unwrap_or_default()))
}

struct Outline(Sha256);

impl Outline {
    fn value(&mut self, value: &Value, at: Cursor<'_>) {
        match value {
            Value::Object(fields) if !at.is_atomic() => {
                self.sign(b"{");
                for (name, value) in fields {
                    self.text(name);
                    self.value(value, at.field(name));
                }
                self.sign(b"}");
            }
            Value::Array(items) => match at.list_type() {
                ListType::Map(keys) if items.iter().all(|item| keys.are_in(item)) => self.keyed(keys, items, at),
                ListType::Set => items.iter().for_each(|item| self.text(&item.to_string())),
                _ => self.sign(b"a"),
            },
            _ => self.sign(b"v"),
        }
    }

    /// The order counts: of init containers it is the order in which they run.
    fn keyed(&mut self, keys: Keys<'_>, items: &[Value], at: Cursor<'_>) {
        self.sign(b"[");
        for item in items {
            self.text(&keys.describe(item));
            self.value(item, at.items());
        }
        self.sign(b"]");
    }

    fn sign(&mut self, sign: &[u8; 1]) {
        self.0.update(sign);
    }

    /// With its length before it, so that no two lists of texts look the same.
    fn text(&mut self, text: &str) {
        self.0.update(text.len().to_le_bytes());
        self.0.update(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::samples;

    fn of(template: Value) -> String {
        let body = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 1, "template": {"spec": template}}});
        outline(&body, &samples::schema("apps/v1", "Deployment"))
    }

    #[test]
    fn values_are_no_part_of_it_and_fields_are() {
        let pod = |container: Value| json!({"containers": [container]});
        let web = |image: &str| json!({"name": "web", "image": image, "args": ["a"], "ports": [{"containerPort": 80}]});
        let base = of(pod(web("a:1")));
        let changed = |field: &str, value: Value| {
            let mut container = web("a:1");
            container[field] = value;
            of(pod(container))
        };
        for (what, other) in [
            ("another image", of(pod(web("a:2")))),
            ("another atomic list", changed("args", json!(["b", "c"]))),
            ("a port with its default protocol", changed("ports", json!([{"containerPort": 80}]))),
        ] {
            assert_eq!(base, other, "{what}");
        }
        for (what, other) in [
            ("another name", changed("name", json!("app"))),
            ("one field more", changed("tty", json!(true))),
            ("another port", changed("ports", json!([{"containerPort": 81}]))),
            ("a port less", changed("ports", json!([]))),
            ("two containers", of(json!({"containers": [web("a"), {"name": "b"}]}))),
        ] {
            assert_ne!(base, other, "{what}");
        }
        let order = |names: [&str; 2]| of(json!({"initContainers": names.map(|name| json!({"name": name}))}));
        assert_ne!(order(["a", "b"]), order(["b", "a"]), "they run in another order");
        let selected = |node: Value| of(json!({"nodeSelector": node}));
        assert_eq!(selected(json!({"a": "1"})), selected(json!({"b": "1"})), "it has one owner as a whole");
    }
}
