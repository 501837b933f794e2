//! Repairs elements of keyed lists whose key somebody changed, such as the number of a port. For server-side apply the changed
//! element is another one, with another owner. An apply of ours would keep both, with the same name, and the API server refuses
//! that. So the changed element must be replaced first. Pure.

use serde_json::{Map, Value};

use crate::schema::{Cursor, Keys, ListType, Schema};

/// A merge patch that replaces such elements; none if there are none. It replaces whole lists, so it is for this state of the child
/// alone. Without a schema, the built-in one is used.
pub fn list_repair(desired: &Value, live: Value, schema: Option<&Schema>) -> Option<Value> {
    let schema = Schema::known_or_built_in(schema, desired);
    let (Value::Object(desired), Value::Object(mut live)) = (desired, live) else { return None };
    let mut patch = Map::new();
    for (field, wanted) in desired.iter().filter(|(field, _)| *field != "metadata") {
        let Some(mut rest) = live.remove(field) else { continue };
        if repair(wanted, &mut rest, schema.root().field(field)) > 0 {
            patch.insert(field.clone(), rest);
        }
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// Replaces such elements in `live` and returns their number.
fn repair(desired: &Value, live: &mut Value, at: Cursor<'_>) -> usize {
    match (desired, live) {
        (Value::Object(desired), Value::Object(live)) => {
            desired.iter().filter_map(|(key, wanted)| Some(repair(wanted, live.get_mut(key)?, at.field(key)))).sum()
        }
        (Value::Array(desired), Value::Array(live)) => match at.list_type() {
            ListType::Map(keys) if desired.iter().all(|item| keys.are_in(item)) => {
                repair_list(keys, desired, live, at.items())
            }
            _ => 0,
        },
        _ => 0,
    }
}

fn repair_list(keys: Keys<'_>, desired: &[Value], live: &mut [Value], items: Cursor<'_>) -> usize {
    let mut repaired = 0;
    for item in desired {
        if let Some(there) = live.iter_mut().find(|there| keys.same(item, there)) {
            repaired += repair(item, there, items);
        } else if let Some(place) = with_changed_key(keys, item, desired, live) {
            live[place] = item.clone();
            repaired += 1;
        }
    }
    repaired
}

/// The index of the element whose key was changed: it has the name of the missing element and is not desired itself.
fn with_changed_key(keys: Keys<'_>, missing: &Value, desired: &[Value], live: &[Value]) -> Option<usize> {
    // Where the name is itself a key, an element with this name is the same element.
    let name = missing.get("name").filter(|_| !keys.include("name"))?;
    let unwanted = |there: &Value| !desired.iter().any(|item| keys.same(item, there));
    live.iter().position(|there| there.get("name") == Some(name) && unwanted(there))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::schema::samples;

    fn workload(ports: Value) -> Value {
        let pod = json!({"containers": [{"name": "app", "image": "a", "ports": ports}]});
        json!({
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "spec": {"replicas": 1, "template": {"spec": pod}},
        })
    }

    #[test]
    fn an_element_whose_key_was_changed_is_replaced_and_others_stay() {
        let http = json!({"name": "http", "containerPort": 8080});
        let moved = json!({"name": "http", "containerPort": 9999, "protocol": "TCP"});
        let theirs = json!({"name": "debug", "containerPort": 6060, "protocol": "TCP"});
        let desired = workload(json!([http]));
        let cases = [
            ("as desired", json!([http, theirs]), None),
            ("missing, nobody in its place", json!([theirs]), None),
            ("another in its place", json!([moved, theirs]), Some(json!([http, theirs]))),
        ];
        for (name, live, expected) in cases {
            let with_schema =
                list_repair(&desired, workload(live.clone()), Some(&samples::schema("apps/v1", "Deployment")));
            let patch = list_repair(&desired, workload(live), None);
            assert_eq!(patch, with_schema, "{name}");
            let pod = patch.as_ref().map(|patch| &patch["spec"]["template"]["spec"]);
            assert_eq!(pod.map(|pod| pod["containers"][0]["ports"].clone()), expected, "{name}");
            if let Some(patch) = patch {
                assert_eq!(patch["spec"]["replicas"], 1, "what is not a list stays as it is");
            }
        }
    }
}
