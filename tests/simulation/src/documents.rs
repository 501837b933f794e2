//! The API server's OpenAPI documents without the kinds that the plugin of the simulation has nothing to do with. Hosts read them at
//! each start, and reading the whole ones takes as long as everything else in a history.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde_json::{Map, Value};

use crate::plugin::spec::ChildKind;

/// A document with the schemas of the children's kinds and of what they refer to; the same document if it cannot be read.
pub fn reduced(document: &Bytes) -> Bytes {
    let Ok(mut whole) = serde_json::from_slice::<Value>(document) else { return document.clone() };
    let Some(schemas) = whole.pointer_mut("/components/schemas").and_then(Value::as_object_mut) else {
        return document.clone();
    };
    let mut wanted: Vec<String> =
        schemas.iter().filter(|(_, schema)| is_wanted(schema)).map(|(name, _)| name.clone()).collect();
    let mut kept = BTreeSet::new();
    while let Some(name) = wanted.pop() {
        if let Some(schema) = schemas.get(&name) {
            let mut references = BTreeSet::new();
            collect(schema, &mut references);
            wanted.extend(references.into_iter().filter(|name| !kept.contains(name)));
            kept.insert(name);
        }
    }
    *schemas = std::mem::take(schemas).into_iter().filter(|(name, _)| kept.contains(name)).collect::<Map<_, _>>();
    // What can be done with the kinds is of no interest to hosts.
    whole["paths"] = Value::Object(Map::new());
    whole.to_string().into()
}

fn is_wanted(schema: &Value) -> bool {
    let kinds = schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten();
    kinds.into_iter().any(|kind| ChildKind::ALL.iter().any(|child| kind["kind"] == child.as_str()))
}

/// The names of the schemas that one refers to.
fn collect(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(fields) => {
            let reference = fields.get("$ref").and_then(Value::as_str).and_then(|path| path.rsplit('/').next());
            names.extend(reference.map(str::to_owned));
            fields.values().for_each(|field| collect(field, names));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_the_kinds_refer_to_stays() {
        let of = |kind: &str| json!([{"group": "", "version": "v1", "kind": kind}]);
        let document = json!({"paths": {"/a": {}}, "components": {"schemas": {
            "Secret": {"x-kubernetes-group-version-kind": of("Secret"), "properties": {"a": {"$ref": "#/c/A"}}},
            "Pod": {"x-kubernetes-group-version-kind": of("Pod"), "properties": {"b": {"$ref": "#/c/B"}}},
            "A": {"items": [{"$ref": "#/c/C"}]}, "B": {}, "C": {"properties": {"a": {"$ref": "#/c/A"}}},
        }}});
        let reduced: Value = serde_json::from_slice(&reduced(&document.to_string().into())).unwrap_or_default();
        let names: Vec<_> = reduced["components"]["schemas"].as_object().into_iter().flat_map(Map::keys).collect();
        assert_eq!(names, ["A", "C", "Secret"]);
    }
}
