//! The outline of a body: which fields it has, whatever their values are. Two bodies with one outline differ in values alone, so that
//! nothing has to be taken away when one replaces the other. Pure.
//!
//! It follows from the body alone. What the API server tells of a kind is known later than the first children are written, and changes;
//! so the built-in table says which lists have keys. Where it does not know, the outline rather says too much: what could be a field by
//! itself to server-side apply is one here.

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::schema::{Cursor, Keys, ListType, Schema};

/// The outline of a body, as twelve hexadecimal digits. It is kept in an annotation.
pub(super) fn outline(body: &Value) -> String {
    let mut outline = Outline(Sha256::new());
    // In another version of its kind the same fields may have other names.
    outline.text(&body["apiVersion"].to_string());
    outline.value(body, Schema::known_or_built_in(None, body).root());
    let hash = outline.0.finalize();
    format!("{:012x}", u64::from_be_bytes(hash.first_chunk().copied().unwrap_or_default()) >> 16)
}

struct Outline(Sha256);

impl Outline {
    fn value(&mut self, value: &Value, at: Cursor<'_>) {
        match value {
            Value::Object(fields) => {
                self.sign(b"{");
                for (name, value) in fields {
                    self.text(name);
                    self.value(value, at.field(name));
                }
                self.sign(b"}");
            }
            Value::Array(items) => self.list(items, at),
            _ => self.sign(b"v"),
        }
    }

    fn list(&mut self, items: &[Value], at: Cursor<'_>) {
        match at.list_type() {
            // It has one owner as a whole, or it is a set, of which no patch takes anything away (`plan/value_patch.rs`).
            _ if items.iter().all(is_scalar) => self.sign(b"a"),
            ListType::Map(keys) if items.iter().all(|item| keys.identify(item)) => self.keyed(keys, items, at),
            // Its elements may have keys that nobody knows here.
            _ => items.iter().for_each(|item| self.text(&item.to_string())),
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

fn is_scalar(value: &Value) -> bool {
    !matches!(value, Value::Object(_) | Value::Array(_))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(template: Value) -> String {
        outline(
            &json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 1, "template": {"spec": template}}}),
        )
    }

    #[test]
    fn values_are_no_part_of_it_and_fields_are() {
        let pod = |container: Value| json!({"containers": [container]});
        let web = |image: &str| json!({"name": "web", "image": image, "args": ["a"], "ports": [{"containerPort": 80}]});
        let base = of(pod(web("a:1")));
        assert_eq!(base.len(), 12);
        let changed = |field: &str, value: Value| {
            let mut container = web("a:1");
            container[field] = value;
            of(pod(container))
        };
        for (what, other) in [
            ("another image", of(pod(web("a:2")))),
            ("another list of texts", changed("args", json!(["b", "c"]))),
            ("the same port", changed("ports", json!([{"containerPort": 80}]))),
        ] {
            assert_eq!(base, other, "{what}");
        }
        for (what, other) in [
            ("another name", changed("name", json!("app"))),
            ("one field more", changed("tty", json!(true))),
            ("another port", changed("ports", json!([{"containerPort": 81}]))),
            ("a port less", changed("ports", json!([]))),
            ("a list that is none", changed("args", json!("a"))),
            ("two containers", of(json!({"containers": [web("a"), {"name": "b"}]}))),
        ] {
            assert_ne!(base, other, "{what}");
        }
        let order = |names: [&str; 2]| of(json!({"initContainers": names.map(|name| json!({"name": name}))}));
        assert_ne!(order(["a", "b"]), order(["b", "a"]), "they run in another order");
        let volume = |key: &str| json!({"name": "a", "configMap": {"items": [{"key": key, "path": "b"}]}});
        let of_volume = |key: &str| of(json!({"volumes": [volume(key)]}));
        assert_ne!(of_volume("a"), of_volume("b"), "a list that the table does not know");
    }

    #[test]
    fn a_list_of_objects_counts_with_its_content_where_the_kind_is_not_built_in() {
        let of = |version: &str, spec: Value| {
            outline(&json!({"apiVersion": format!("example.com/{version}"), "kind": "Gadget", "spec": spec}))
        };
        let gadget = |size: u32, value: &str| json!({"size": size, "tags": [value], "parts": [{"name": "a"}]});
        assert_eq!(of("v1", gadget(1, "a")), of("v1", gadget(2, "b")));
        assert_ne!(of("v1", gadget(1, "a")), of("v2", gadget(1, "a")));
        let part = |value: &str| json!({"parts": [{"name": "a", "value": value}]});
        assert_ne!(of("v1", part("a")), of("v1", part("b")));
        let nested = |value: &str| json!({"parts": [[value]]});
        assert_ne!(of("v1", nested("a")), of("v1", nested("b")));
    }
}
