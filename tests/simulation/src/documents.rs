//! The API server's OpenAPI documents without the kinds that the plugin of the simulation has nothing to do with. Hosts read them at
//! each start, and reading the whole ones takes as long as everything else in a history.

use std::collections::BTreeSet;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::plugin::{scope::Scope, spec::ChildKind};

/// What ends the names of schemas that are read in full: the kinds' own, and what the plugin and others write of them. All that others
/// refer to is taken to be anything, for nobody writes it.
const READ: [&str; 21] = [
    ".ConfigMap",
    ".Container",
    ".ContainerPort",
    ".Deployment",
    ".DeploymentCondition",
    ".DeploymentSpec",
    ".DeploymentStatus",
    ".DeploymentStrategy",
    ".Job",
    ".JobSpec",
    ".JobStatus",
    ".LabelSelector",
    ".ObjectMeta",
    ".OwnerReference",
    ".PodSpec",
    ".PodTemplateSpec",
    ".RollingUpdateDeployment",
    ".Secret",
    ".Service",
    ".ServicePort",
    ".ServiceSpec",
];

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
            if is_read(&name) {
                collect(schema, &mut references);
            }
            wanted.extend(references.into_iter().filter(|name| !kept.contains(name)));
            kept.insert(name);
        }
    }
    for (_, schema) in schemas.iter_mut().filter(|(name, schema)| !is_read(name) && schema["type"] == "object") {
        *schema = json!({"type": "object"});
    }
    *schemas = std::mem::take(schemas).into_iter().filter(|(name, _)| kept.contains(name)).collect::<Map<_, _>>();
    // What can be done with the kinds is of no interest to hosts.
    whole["paths"] = Value::Object(Map::new());
    whole.to_string().into()
}

fn is_read(name: &str) -> bool {
    READ.iter().any(|end| name.ends_with(end))
}

fn is_wanted(schema: &Value) -> bool {
    let kinds = schema["x-kubernetes-group-version-kind"].as_array().into_iter().flatten();
    kinds.into_iter().any(|kind| ChildKind::all(Scope::Cluster).iter().any(|child| kind["kind"] == child.as_str()))
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
    use super::*;

    #[test]
    fn what_the_kinds_refer_to_stays_as_far_as_it_is_read() {
        let of = |kind: &str| json!([{"group": "", "version": "v1", "kind": kind}]);
        let document = json!({"paths": {"/a": {}}, "components": {"schemas": {
            "v1.Secret": {"x-kubernetes-group-version-kind": of("Secret"), "properties": {"a": {"$ref": "#/c/v1.PodSpec"}}},
            "v1.Pod": {"x-kubernetes-group-version-kind": of("Pod"), "properties": {"b": {"$ref": "#/c/B"}}},
            "v1.PodSpec": {"items": [{"$ref": "#/c/C"}]}, "B": {},
            "C": {"type": "object", "properties": {"b": {"$ref": "#/c/B"}}},
        }}});
        let reduced: Value = serde_json::from_slice(&reduced(&document.to_string().into())).unwrap_or_default();
        let schemas = &reduced["components"]["schemas"];
        let names: Vec<_> = schemas.as_object().into_iter().flat_map(Map::keys).collect();
        assert_eq!(names, ["C", "v1.PodSpec", "v1.Secret"]);
        assert_eq!(schemas["C"], json!({"type": "object"}));
    }
}
