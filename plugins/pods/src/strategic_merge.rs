//! Merges what a user gives of a Pod over what a plugin makes, as `kubectl patch --type=strategic` does: maps field by field, lists of
//! containers, volumes and the like entry by entry, and every other list as a whole. It checks nothing.

use serde_json::{Map, Value};

/// The fields of a Pod that are lists whose entries have a name, and the field with that name.
const KEYS: [(&str, &str); 13] = [
    ("containers", "name"),
    ("initContainers", "name"),
    ("volumes", "name"),
    ("env", "name"),
    ("volumeMounts", "mountPath"),
    ("volumeDevices", "devicePath"),
    ("ports", "containerPort"),
    ("imagePullSecrets", "name"),
    ("hostAliases", "ip"),
    ("resourceClaims", "name"),
    ("claims", "name"),
    ("topologySpreadConstraints", "topologyKey"),
    ("schedulingGates", "name"),
];

/// Lists to which entries are added: those of the plugin stay.
const ADDED_TO: [&str; 2] = ["tolerations", "envFrom"];

/// Merges a patch into an object. A field that the patch has as `null` is removed.
pub fn merge(object: &mut Value, patch: &Value) {
    let Some(fields) = patch.as_object() else {
        *object = patch.clone();
        return;
    };
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let Some(merged) = object.as_object_mut() else { return };
    for (field, value) in fields {
        if value.is_null() {
            merged.remove(field);
        } else {
            merge_field(merged.entry(field.as_str()).or_insert(Value::Null), field, value);
        }
    }
}

fn merge_field(old: &mut Value, field: &str, new: &Value) {
    let key = KEYS.iter().find(|(list, _)| *list == field).map(|(_, key)| *key);
    match (old, new, key) {
        (Value::Array(old), Value::Array(new), Some(key)) => merge_list(old, new, key),
        (Value::Array(old), Value::Array(new), None) if ADDED_TO.contains(&field) => {
            let added: Vec<_> = new.iter().filter(|entry| !old.contains(entry)).cloned().collect();
            old.extend(added);
        }
        (old, new, _) => merge(old, new),
    }
}

fn merge_list(old: &mut Vec<Value>, new: &[Value], key: &str) {
    for entry in new {
        match old.iter_mut().find(|existing| existing[key] == entry[key]) {
            Some(existing) => merge(existing, entry),
            None => old.push(entry.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::merge;
    use serde_json::{Value, json};

    #[test]
    fn maps_are_merged_by_field_and_lists_by_the_names_of_their_entries() {
        let cases: [(Value, Value, Value); 8] = [
            (json!({"a": 1, "b": {"c": 2}}), json!({"b": {"d": 3}}), json!({"a": 1, "b": {"c": 2, "d": 3}})),
            (json!({"a": 1, "b": 2}), json!({"a": null}), json!({"b": 2})),
            (
                json!({"containers": [{"name": "a", "image": "i"}]}),
                json!({"containers": [{"name": "b"}, {"name": "a", "tty": true}]}),
                json!({"containers": [{"name": "a", "image": "i", "tty": true}, {"name": "b"}]}),
            ),
            (
                json!({"env": [{"name": "A", "value": "1"}]}),
                json!({"env": [{"name": "A", "value": "2"}, {"name": "B"}]}),
                json!({"env": [{"name": "A", "value": "2"}, {"name": "B"}]}),
            ),
            (json!({"args": ["a"]}), json!({"args": ["b"]}), json!({"args": ["b"]})),
            (
                json!({"tolerations": [{"key": "a"}]}),
                json!({"tolerations": [{"key": "b"}, {"key": "a"}]}),
                json!({"tolerations": [{"key": "a"}, {"key": "b"}]}),
            ),
            (json!({}), json!({"affinity": {"nodeAffinity": {}}}), json!({"affinity": {"nodeAffinity": {}}})),
            (json!({"volumes": [{"name": "shm"}]}), json!({"volumes": []}), json!({"volumes": [{"name": "shm"}]})),
        ];
        for (mut object, patch, expected) in cases {
            merge(&mut object, &patch);
            assert_eq!(object, expected, "{patch}");
        }
    }
}
