//! The merge patch that brings a live child to the desired values, where nothing but values has to change. An API server carries it out
//! with less work than a server-side apply (decision 33). It never takes a field away, and leaves to the apply whatever a merge
//! patch cannot say, or would say less exactly. Pure.

use serde_json::{Map, Value, json};

use crate::schema::{Cursor, Keys, ListType, Schema};

/// The patch, without what guards it; none if an apply has to do it. It has lists in full, so it is for this state of the child alone.
/// `schema` is the API server's: the built-in one does not know who else may have elements in a list.
pub fn value_patch(desired: &Value, live: &Value, schema: &Schema) -> Option<Value> {
    let patch = changed(desired, live, schema.root())?;
    Some(if patch.is_null() { json!({}) } else { patch })
}

/// The part of a patch for a value; null if it is as it should be, none if an apply has to do it.
fn changed(desired: &Value, live: &Value, at: Cursor<'_>) -> Option<Value> {
    match (desired, live) {
        // A merge patch takes away what is null.
        (Value::Null, _) => None,
        (desired, live) if desired == live => Some(Value::Null),
        // What somebody added to an object that has one owner has to go.
        (Value::Object(desired), Value::Object(live)) if !at.is_atomic() => changed_fields(desired, live, at),
        // A patch has the elements of a list in full.
        (Value::Array(_), Value::Array(_)) => merged(desired, live, at),
        (Value::Object(_), _) => None,
        (desired, _) => written(desired, at),
    }
}

fn changed_fields(desired: &Map<String, Value>, live: &Map<String, Value>, at: Cursor<'_>) -> Option<Value> {
    let mut patch = Map::new();
    for (name, value) in desired {
        // A null is a value where the schema takes one.
        if live.get(name) == Some(value) {
            continue;
        }
        let there = live.get(name).unwrap_or(&Value::Null);
        let change = changed(value, there, at.field(name))?;
        if change.is_null() {
            continue;
        }
        // An apply says so; the patch would pass it over.
        if !at.allows(name) {
            return None;
        }
        patch.insert(name.clone(), change);
    }
    Some(if patch.is_empty() { Value::Null } else { Value::Object(patch) })
}

/// The whole value as it should be: the live one with the desired fields; none if an apply has to do it.
fn merged(desired: &Value, live: &Value, at: Cursor<'_>) -> Option<Value> {
    match (desired, live) {
        (desired, live) if desired == live => Some(live.clone()),
        (Value::Object(desired), Value::Object(live)) if !at.is_atomic() => {
            let mut whole = live.clone();
            for (name, value) in desired {
                let there = live.get(name).unwrap_or(&Value::Null);
                let value = merged(value, there, at.field(name)).filter(|_| at.allows(name))?;
                whole.insert(name.clone(), value);
            }
            Some(Value::Object(whole))
        }
        (Value::Array(desired_items), Value::Array(live_items)) => match at.list_type() {
            ListType::Map(keys) => merged_items(keys, desired_items, live_items, at.items()),
            ListType::Set => None,
            ListType::Atomic => written(desired, at),
        },
        (Value::Object(_), _) => None,
        (desired, _) => written(desired, at),
    }
}

/// The live elements with the desired ones merged into them, if all of these are there and in the same order.
fn merged_items(keys: Keys<'_>, desired: &[Value], live: &[Value], at: Cursor<'_>) -> Option<Value> {
    if !desired.iter().all(|item| keys.identify(item)) {
        return None;
    }
    let (mut whole, mut next) = (live.to_vec(), 0);
    for item in desired {
        let place = next + live.get(next..)?.iter().position(|there| keys.same(item, there))?;
        *whole.get_mut(place)? = merged(item, live.get(place)?, at)?;
        next = place + 1;
    }
    Some(Value::Array(whole))
}

/// A value that is written as it is; none if it has a null, which a merge patch takes away, or a field that the kind does not have.
fn written(value: &Value, at: Cursor<'_>) -> Option<Value> {
    is_writable(value, at).then(|| value.clone())
}

fn is_writable(value: &Value, at: Cursor<'_>) -> bool {
    match value {
        Value::Null => false,
        Value::Array(items) => items.iter().all(|item| is_writable(item, at.items())),
        Value::Object(fields) => {
            fields.iter().all(|(name, value)| at.allows(name) && is_writable(value, at.field(name)))
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::samples;

    fn deployment(spec: Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec})
    }

    fn with_containers(containers: Value) -> Value {
        deployment(json!({"template": {"spec": {"containers": containers}}}))
    }

    fn patch(desired: &Value, live: &Value) -> Option<Value> {
        value_patch(desired, live, &samples::schema("apps/v1", "Deployment"))
    }

    #[test]
    fn only_what_differs_is_in_it_and_what_others_added_stays() {
        let web = |image: &str| json!({"name": "web", "image": image});
        let filled =
            |image: &str| json!({"name": "web", "image": image, "terminationMessagePath": "/dev/termination-log"});
        let sidecar = json!({"name": "sidecar", "image": "proxy:1"});
        let containers = |items: Value| json!({"spec": {"template": {"spec": {"containers": items}}}});
        for (what, desired, live, expected) in [
            (
                "nothing",
                deployment(json!({"replicas": 2})),
                deployment(json!({"replicas": 2, "paused": true})),
                json!({}),
            ),
            (
                "a number",
                deployment(json!({"replicas": 2})),
                deployment(json!({"replicas": 5, "paused": true})),
                json!({"spec": {"replicas": 2}}),
            ),
            (
                "a field that is missing",
                deployment(json!({"replicas": 2})),
                deployment(json!({"paused": true})),
                json!({"spec": {"replicas": 2}}),
            ),
            (
                "an element of a keyed list, beside others",
                with_containers(json!([web("b")])),
                with_containers(json!([sidecar, filled("a")])),
                containers(json!([sidecar, filled("b")])),
            ),
            (
                "an atomic list",
                with_containers(json!([{"name": "web", "args": ["b"]}])),
                with_containers(json!([{"name": "web", "args": ["a", "c"], "image": "a"}])),
                containers(json!([{"name": "web", "args": ["b"], "image": "a"}])),
            ),
        ] {
            assert_eq!(patch(&desired, &live), Some(expected), "{what}");
        }
    }

    #[test]
    fn what_a_patch_cannot_say_is_left_to_an_apply() {
        let container = |name: &str| json!({"name": name, "image": "a"});
        let selected = |labels: Value| deployment(json!({"selector": {"matchLabels": labels}}));
        for (what, desired, live) in [
            (
                "an element is missing",
                with_containers(json!([container("a"), container("b")])),
                with_containers(json!([container("a")])),
            ),
            (
                "another order",
                with_containers(json!([{"name": "a", "image": "b"}, container("b")])),
                with_containers(json!([container("b"), container("a")])),
            ),
            (
                "an element without its key",
                with_containers(json!([{"image": "b"}])),
                with_containers(json!([container("a")])),
            ),
            ("an object that has one owner", selected(json!({"a": "1"})), selected(json!({"a": "1", "b": "2"}))),
            (
                "a field that the kind does not have",
                deployment(json!({"replica": 2})),
                deployment(json!({"replicas": 2})),
            ),
            ("a whole object is missing", with_containers(json!([container("a")])), deployment(json!({"replicas": 2}))),
        ] {
            assert_eq!(patch(&desired, &live), None, "{what}");
        }
        let policy = |rules: Value| json!({"spec": {"ingress": rules}});
        let of_policy = |desired: Value, live: Value| {
            value_patch(&policy(desired), &policy(live), &samples::schema("networking.k8s.io/v1", "NetworkPolicy"))
        };
        let ports = |number: u16| json!([{"ports": [{"port": number}]}]);
        assert_eq!(of_policy(ports(2), ports(1)), Some(policy(ports(2))));
        assert_eq!(of_policy(json!([{"prots": []}]), ports(1)), None, "a field that its elements do not have");
        let gadget =
            |values: Value| json!({"apiVersion": "example.com/v1", "kind": "Gadget", "spec": {"anything": values}});
        let schema = samples::schema("example.com/v1", "Gadget");
        assert_eq!(value_patch(&gadget(json!([null])), &gadget(json!([1])), &schema), None, "null is a value there");
        assert_eq!(value_patch(&gadget(Value::Null), &gadget(json!(1)), &schema), None, "it would be taken away");
        let nothing = json!({"apiVersion": "example.com/v1", "kind": "Gadget", "spec": {}});
        assert_eq!(value_patch(&gadget(Value::Null), &nothing, &schema), None, "it would not be there");
    }
}
