//! Merges a Pod template into another one as `kubectl patch --type=strategic` does: lists whose items have a key are merged item by
//! item, other lists are replaced, and null removes. Directives such as `$patch` have no meaning here. It checks nothing.

use serde_json::{Map, Value};

/// The fields whose lists are merged, with the key of an item.
const KEYS: [(&str, &str); 11] = [
    ("containers", "name"),
    ("initContainers", "name"),
    ("env", "name"),
    ("volumes", "name"),
    ("volumeMounts", "mountPath"),
    ("volumeDevices", "devicePath"),
    ("ports", "containerPort"),
    ("imagePullSecrets", "name"),
    ("resourceClaims", "name"),
    ("hostAliases", "ip"),
    ("topologySpreadConstraints", "topologyKey"),
];

/// The fields whose items are replaced as a whole: a volume has one source, and a variable one value.
const REPLACED_WHOLE: [&str; 2] = ["volumes", "env"];

/// A template with another one merged into it.
pub fn strategic(mut template: Value, given: &Map<String, Value>) -> Value {
    if let Some(fields) = template.as_object_mut() {
        merge_fields(fields, given);
    }
    template
}

fn merge_fields(fields: &mut Map<String, Value>, given: &Map<String, Value>) {
    for (name, value) in given {
        match (fields.get_mut(name), value) {
            (_, Value::Null) => drop(fields.remove(name)),
            (Some(Value::Object(inner)), Value::Object(given)) => merge_fields(inner, given),
            (Some(Value::Array(items)), Value::Array(given)) if key_of(name).is_some() => {
                merge_items(name, items, given)
            }
            (_, value) => drop(fields.insert(name.clone(), without_nulls(value))),
        }
    }
}

fn key_of(list: &str) -> Option<&'static str> {
    KEYS.iter().find(|(name, _)| *name == list).map(|(_, key)| *key)
}

fn merge_items(list: &str, items: &mut Vec<Value>, given: &[Value]) {
    let Some(key) = key_of(list) else { return };
    for value in given {
        let same = |item: &&mut Value| value.get(key).is_some() && item.get(key) == value.get(key);
        match (items.iter_mut().find(same), value) {
            (Some(Value::Object(inner)), Value::Object(given)) if !REPLACED_WHOLE.contains(&list) => {
                merge_fields(inner, given);
            }
            (Some(item), value) => *item = without_nulls(value),
            (None, value) => items.push(without_nulls(value)),
        }
    }
}

/// A value without the fields that are null: there is nothing to remove.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str = "
metadata: {labels: {app: a}}
spec:
  containers: [{name: model, image: one, env: [{name: A, value: '1'}], ports: [{containerPort: 80, name: http}]}]
  tolerations: [{key: gpu}]
  volumes: [{name: shm, emptyDir: {medium: Memory}}]
";

    /// What is given, and the pointer and value of one field of the result.
    const CASES: &[(&str, &str, &str)] = &[
        ("metadata: {labels: {b: c}}", "/metadata/labels", "{app: a, b: c}"),
        ("metadata: {annotations: {b: c}}", "/metadata/annotations", "{b: c}"),
        ("spec: {nodeSelector: {disk: ssd}}", "/spec/nodeSelector", "{disk: ssd}"),
        ("spec: {containers: [{name: model, image: two}]}", "/spec/containers/0/image", "two"),
        ("spec: {containers: [{name: model, image: two}]}", "/spec/containers/0/ports/0/name", "http"),
        ("spec: {containers: [{name: side, image: two}]}", "/spec/containers/1", "{name: side, image: two}"),
        (
            "spec: {containers: [{name: model, env: [{name: A, valueFrom: {fieldRef: {fieldPath: p}}}, {name: B, value: x}]}]}",
            "/spec/containers/0/env",
            "[{name: A, valueFrom: {fieldRef: {fieldPath: p}}}, {name: B, value: x}]",
        ),
        ("spec: {tolerations: [{key: spot}]}", "/spec/tolerations", "[{key: spot}]"),
        (
            "spec: {tolerations: null}",
            "/spec",
            "{containers: [{name: model, image: one, env: [{name: A, value: '1'}], \
          ports: [{containerPort: 80, name: http}]}], volumes: [{name: shm, emptyDir: {medium: Memory}}]}",
        ),
        (
            "spec: {volumes: [{name: shm, hostPath: {path: /x}}]}",
            "/spec/volumes",
            "[{name: shm, hostPath: {path: /x}}]",
        ),
        ("spec: {priorityClassName: null}", "/spec/tolerations", "[{key: gpu}]"),
    ];

    #[test]
    fn lists_with_keys_are_merged_and_others_replaced() -> Result<(), Box<dyn std::error::Error>> {
        for (given, pointer, expected) in CASES {
            let given: Map<String, Value> = serde_saphyr::from_str(given)?;
            let merged = strategic(serde_saphyr::from_str(TEMPLATE)?, &given);
            let expected: Value = serde_saphyr::from_str(expected)?;
            assert_eq!(merged.pointer(pointer), Some(&expected), "{given:?}");
        }
        Ok(())
    }
}
