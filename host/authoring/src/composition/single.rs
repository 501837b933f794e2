//! A composition of one set of manifests: what usually varies becomes fields, with the values of the manifests as defaults. It renders
//! nothing.

use serde_json::Value;

use super::{
    draft::{Case, Draft, Resource, ids, lower_camel},
    fields::{Field, Fields, read},
    manifests::{Manifests, name},
    names::Names,
    node::{Path, Step, at},
};

/// Words in the names of variables whose values are secrets.
const SECRET: &[&str] =
    &["PASSWORD", "PASSWD", "SECRET", "TOKEN", "CREDENTIAL", "APIKEY", "API_KEY", "PRIVATE_KEY", "ACCESS_KEY"];

/// A value that usually varies.
struct Suspect {
    path: Path,
    /// The names of its field, without that of its child.
    field: Vec<String>,
    description: String,
}

/// The composition.
pub(crate) fn draft(manifests: &Manifests) -> Draft {
    let children = &manifests.children;
    let names = Names::of(children, manifests.namespace.as_deref());
    let suspects: Vec<_> = children.iter().map(suspects).collect();
    let is_one = suspects.iter().filter(|of_child| !of_child.is_empty()).count() < 2;
    let mut draft = Draft { notes: manifests.left_out.clone(), ..Draft::default() };
    let named: Vec<_> = children.iter().map(|child| (child, names.rest(child))).collect();
    for (((child, rest), of_child), id) in named.iter().zip(&suspects).zip(ids(&named)) {
        let mut edits = names.edits(child);
        for suspect in of_child {
            // What follows from the object's name is no field.
            if edits.0.contains_key(&suspect.path) {
                continue;
            }
            let Some(value) = at(child, &suspect.path) else { continue };
            let component = if is_one { Vec::new() } else { vec![component(rest, &names.base)] };
            let wished = [component, suspect.field.clone()].concat();
            let field =
                Field { description: suspect.description.clone(), default: Some(value.clone()), like: value.clone() };
            let field_name = free(&draft.fields, wished, value);
            edits.whole(suspect.path.clone(), read(&field_name, false));
            draft.fields.add(field_name, field);
        }
        let template = edits.template(child);
        draft.notes.extend(notes(child, &template));
        draft.resources.push(Resource { id, template, include_when: Vec::new() });
    }
    draft.cases.push(Case {
        title: "an object with the values of the manifests becomes what they say".to_owned(),
        name: names.base.clone(),
        namespace: manifests.namespace.clone().unwrap_or_else(|| "default".to_owned()),
        spec: draft.fields.defaults(),
        children: children.iter().map(|child| names.renamed(child)).collect(),
    });
    draft
}

/// The name of a child in the names of fields.
fn component(rest: &str, base: &str) -> String {
    let own = lower_camel(rest);
    if own.is_empty() { lower_camel(base) } else { own }
}

/// A name that no field has; the same one where its value is the same host.
fn free(fields: &Fields, wished: Vec<String>, value: &Value) -> Vec<String> {
    let is_same = fields.defaults().pointer(&format!("/{}", wished.join("/"))) == Some(value);
    if is_same && wished.last().is_some_and(|last| last == "host") {
        return wished;
    }
    let (mut free, mut number) = (wished.clone(), 2u32);
    while !fields.is_free(&free) {
        free = wished.clone();
        if let Some(last) = free.last_mut() {
            *last = format!("{last}{number}");
        }
        number += 1;
    }
    free
}

/// What needs a look by people.
pub(crate) fn notes(child: &Value, template: &Value) -> Vec<String> {
    let mut notes = Vec::new();
    let labels = &template["spec"]["selector"]["matchLabels"];
    let is_fixed = labels
        .as_object()
        .is_some_and(|labels| !labels.values().any(|value| value.as_str().is_some_and(|it| it.contains("${"))));
    if is_fixed {
        notes.push(format!(
            "{}: no label of its selector has the object's name, so two objects in one namespace would select each other's Pods; add one, \
             such as `app: ${{schema.metadata.name}}`, in spec.selector.matchLabels and in the labels of the Pods",
            name(child)
        ));
    }
    for container in containers(child) {
        let Some(variables) = at(child, &container).and_then(|container| container["env"].as_array()) else { continue };
        for variable in variables.iter().filter(|variable| variable["value"].is_string()) {
            let own = variable["name"].as_str().unwrap_or_default();
            if is_secret(own) {
                notes.push(format!(
                    "{}: the value of {own} looks like a secret and stands in composition.yaml; take it from a Secret with valueFrom.secretKeyRef",
                    name(child)
                ));
            }
        }
    }
    notes
}

/// Whether a value of that name is a secret.
pub(crate) fn is_secret(name: &str) -> bool {
    let name = name.to_uppercase();
    SECRET.iter().any(|word| name.contains(word))
}

fn fields(names: &[&str]) -> Path {
    names.iter().map(|name| Step::Field((*name).to_owned())).collect()
}

/// The way to the spec of the Pods of a child.
fn pod_spec(child: &Value) -> Option<Path> {
    match child["kind"].as_str()? {
        "Deployment" | "StatefulSet" | "DaemonSet" | "ReplicaSet" | "Job" => {
            Some(fields(&["spec", "template", "spec"]))
        }
        "CronJob" => Some(fields(&["spec", "jobTemplate", "spec", "template", "spec"])),
        "Pod" => Some(fields(&["spec"])),
        _ => None,
    }
}

/// The ways to the containers of a child, the main one first.
fn containers(child: &Value) -> Vec<Path> {
    let Some(pod) = pod_spec(child) else { return Vec::new() };
    let mut found = Vec::new();
    for list in ["containers", "initContainers"] {
        let path = [pod.clone(), fields(&[list])].concat();
        let length = at(child, &path).and_then(Value::as_array).map_or(0, Vec::len);
        found.extend((0..length).map(|place| [path.clone(), vec![Step::Element(place)]].concat()));
    }
    found
}

fn suspects(child: &Value) -> Vec<Suspect> {
    let mut found = Vec::new();
    let mut add = |path: Path, field: Vec<String>, description: String| {
        if at(child, &path).is_some() {
            found.push(Suspect { path, field, description });
        }
    };
    let kind = child["kind"].as_str().unwrap_or_default();
    if ["Deployment", "StatefulSet", "ReplicaSet"].contains(&kind) {
        add(fields(&["spec", "replicas"]), vec!["replicas".into()], "How many Pods run it.".into());
    }
    if kind == "CronJob" {
        add(fields(&["spec", "schedule"]), vec!["schedule".into()], "When it runs.".into());
    }
    for (place, container) in containers(child).into_iter().enumerate() {
        let own = at(child, &container).and_then(|container| container["name"].as_str()).unwrap_or_default();
        // The main container is meant where none is named.
        let prefix = if place == 0 { Vec::new() } else { vec![lower_camel(own)] };
        let of = |names: &[&str]| [prefix.clone(), names.iter().map(|name| (*name).to_owned()).collect()].concat();
        add(
            [container.clone(), fields(&["image"])].concat(),
            of(&["image"]),
            format!("The image of the container {own}."),
        );
        add(
            [container.clone(), fields(&["resources"])].concat(),
            of(&["resources"]),
            format!("What the container {own} needs."),
        );
        let variables = at(child, &container).and_then(|container| container["env"].as_array()).into_iter().flatten();
        for (number, variable) in variables.enumerate() {
            let Some(name) = variable["name"].as_str().filter(|name| !is_secret(name)) else { continue };
            let path = [container.clone(), fields(&["env"]), vec![Step::Element(number)], fields(&["value"])].concat();
            add(path, of(&["env", name]), format!("The variable {name} of the container {own}."));
        }
    }
    if kind == "Ingress" {
        let rules = child["spec"]["rules"].as_array().map_or(0, Vec::len);
        for number in 0..rules {
            let path = [fields(&["spec", "rules"]), vec![Step::Element(number)], fields(&["host"])].concat();
            add(path, vec!["host".into()], "The host name.".into());
        }
        for (number, tls) in child["spec"]["tls"].as_array().into_iter().flatten().enumerate() {
            for host in 0..tls["hosts"].as_array().map_or(0, Vec::len) {
                let path = [
                    fields(&["spec", "tls"]),
                    vec![Step::Element(number)],
                    fields(&["hosts"]),
                    vec![Step::Element(host)],
                ]
                .concat();
                add(path, vec!["host".into()], "The host name.".into());
            }
        }
    }
    if kind == "PersistentVolumeClaim" {
        add(
            fields(&["spec", "resources", "requests", "storage"]),
            vec!["storage".into()],
            "The size of the volume.".into(),
        );
    }
    for number in 0..child["spec"]["volumeClaimTemplates"].as_array().map_or(0, Vec::len) {
        let path = [
            fields(&["spec", "volumeClaimTemplates"]),
            vec![Step::Element(number)],
            fields(&["spec", "resources", "requests", "storage"]),
        ];
        add(path.concat(), vec!["storage".into()], "The size of the volume.".into());
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn workload(name: &str, containers: Value) -> Value {
        json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": name}},
            "template": {"metadata": {"labels": {"app": name}}, "spec": {"containers": containers}},
        }})
    }

    #[test]
    fn what_usually_varies_becomes_fields() {
        let containers = json!([
            {"name": "app", "image": "nginx:1", "env": [{"name": "LEVEL", "value": "info"}, {"name": "DB_PASSWORD", "value": "x"}, {"name": "HOST", "value": "shop"}]},
            {"name": "side-car", "image": "envoy"},
        ]);
        let ingress = json!({"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "shop"}, "spec": {
            "rules": [{"host": "shop.example.com"}], "tls": [{"hosts": ["shop.example.com"]}],
        }});
        let one = draft(&Manifests::of(vec![workload("shop", containers)]));
        assert_eq!(
            one.fields.defaults(),
            json!({"replicas": 2, "image": "nginx:1", "env": {"LEVEL": "info"}, "sideCar": {"image": "envoy"}})
        );
        let template = &one.resources[0].template["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(template["image"], "${schema.spec.image}");
        assert_eq!(template["env"][0]["value"], "${schema.spec.env.LEVEL}");
        assert_eq!(template["env"][1]["value"], "x");
        assert_eq!(template["env"][2]["value"], "${schema.metadata.name}");
        assert!(
            one.notes.iter().any(|note| note.contains("the value of DB_PASSWORD looks like a secret")),
            "{:?}",
            one.notes
        );
        let several = draft(&Manifests::of(vec![
            workload("shop", json!([{"name": "app", "image": "a"}])),
            workload("shop-worker", json!([{"name": "app", "image": "b"}])),
            ingress,
        ]));
        let expected = json!({"shop": {"replicas": 2, "image": "a", "host": "shop.example.com"}, "worker": {"replicas": 2, "image": "b"}});
        assert_eq!(several.fields.defaults(), expected);
        assert_eq!(several.resources[2].template["spec"]["tls"][0]["hosts"][0], "${schema.spec.shop.host}");
    }

    #[test]
    fn a_selector_without_the_objects_name_is_told() {
        let mut child = workload("shop", json!([{"name": "app", "image": "a"}]));
        child["spec"]["selector"]["matchLabels"] = json!({"app": "frontend"});
        let draft = draft(&Manifests::of(vec![child]));
        assert!(draft.notes.iter().any(|note| note.contains("select each other's Pods")), "{:?}", draft.notes);
    }
}
