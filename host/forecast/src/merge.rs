//! What a live child would be after a server-side apply, by the list types of its kind's schema. Fields that the plugin has given up stay:
//! who owns them is not known here. Pure.

use pilothouse_controller::schema::{Cursor, ListType, Schema};
use serde_json::Value;

/// Brings the desired fields into a live child.
pub(crate) fn merge(live: &mut Value, desired: &Value, schema: Option<&Schema>) {
    let schema = Schema::known_or_built_in(schema, desired);
    merge_at(live, desired, schema.root());
}

fn merge_at(live: &mut Value, desired: &Value, at: Cursor<'_>) {
    match (live, desired) {
        (Value::Object(live), Value::Object(desired)) if !at.is_atomic() => {
            for (key, value) in desired {
                merge_at(live.entry(key.clone()).or_insert(Value::Null), value, at.field(key));
            }
        }
        (Value::Array(live), Value::Array(desired)) => merge_lists(live, desired, at),
        (live, desired) => *live = desired.clone(),
    }
}

fn merge_lists(live: &mut Vec<Value>, desired: &[Value], at: Cursor<'_>) {
    match at.list_type() {
        ListType::Map(keys) if desired.iter().all(|item| keys.are_in(item)) => {
            for item in desired {
                match live.iter_mut().find(|there| keys.same(item, there)) {
                    Some(there) => merge_at(there, item, at.items()),
                    None => live.push(item.clone()),
                }
            }
        }
        ListType::Set => {
            for item in desired {
                if !live.contains(item) {
                    live.push(item.clone());
                }
            }
        }
        _ => *live = desired.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_others_set_stays_where_the_list_type_lets_it() {
        let deployment = |spec: Value| json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": spec});
        let containers = |containers: Value| json!({"template": {"spec": {"containers": containers}}});
        for (name, live, desired, expected) in [
            ("a field", json!({"replicas": 3}), json!({"paused": true}), json!({"replicas": 3, "paused": true})),
            (
                "an element of a list with keys",
                containers(json!([{"name": "proxy", "image": "p"}, {"name": "web", "image": "a", "tty": true}])),
                containers(json!([{"name": "web", "image": "b"}])),
                containers(json!([{"name": "proxy", "image": "p"}, {"name": "web", "image": "b", "tty": true}])),
            ),
            (
                "a new element",
                containers(json!([{"name": "proxy"}])),
                containers(json!([{"name": "web"}])),
                containers(json!([{"name": "proxy"}, {"name": "web"}])),
            ),
            (
                "a list with one owner",
                containers(json!([{"name": "web", "args": ["a", "b"]}])),
                containers(json!([{"name": "web", "args": ["c"]}])),
                containers(json!([{"name": "web", "args": ["c"]}])),
            ),
        ] {
            let mut merged = deployment(live);
            merge(&mut merged, &deployment(desired), None);
            assert_eq!(merged, deployment(expected), "{name}");
        }
    }
}
