//! The custom kinds of the simulation, as CustomResourceDefinitions. Their schemas are tight, for what is drawn from them is to have a
//! meaning.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    paths::KindPath,
    plugin::{
        app,
        scope::{API_VERSION, Place, Scope},
        spec::ChildKind,
    },
};

/// The group of all custom kinds.
pub const GROUP: &str = "simulation.pilothouse.dev";

/// The name of the CRD of Widgets.
pub const WIDGETS: &str = "widgets.simulation.pilothouse.dev";

/// CRDs.
pub const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// Leases.
pub const LEASES: &str = "leases.coordination.k8s.io";

/// Events.
pub const EVENTS: &str = "events";

/// Namespaces.
pub const NAMESPACES: &str = "namespaces";

/// Pods.
pub const PODS: &str = "pods";

/// The path of CRDs.
pub fn crds() -> KindPath {
    KindPath::of("apiextensions.k8s.io/v1", "CustomResourceDefinition", "")
}

/// The path of namespaces.
pub fn namespaces() -> KindPath {
    KindPath::of("v1", "Namespace", "")
}

/// The path of the objects of the reference plugin.
pub fn apps() -> KindPath {
    KindPath::of(app::API_VERSION, app::KIND, Place::Home.namespace())
}

/// The path of the objects that the plugin reconciles.
pub fn objects(scope: Scope) -> KindPath {
    KindPath::of(API_VERSION, scope.kind(), scope.namespace())
}

/// How the API server calls the objects that the plugin reconciles.
pub fn resource(scope: Scope) -> &'static str {
    match scope {
        Scope::Namespaced => "simulateds.simulation.pilothouse.dev",
        Scope::Cluster => "clustersimulateds.simulation.pilothouse.dev",
    }
}

/// The versions of the kind `Widget` that there are. Hosts know the first one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WidgetVersions {
    /// There is only the first.
    First,
    /// Both are served, and objects are kept in the first.
    Both,
    /// Both are served, and objects are kept in the second.
    Moved,
    /// The first is served no more.
    Second,
}

impl WidgetVersions {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::First, Self::Both, Self::Moved, Self::Second];

    /// The versions, as a definition has them.
    pub fn to_value(self) -> Value {
        let version = |name: &str, served: bool, storage: bool| {
            let schema = json!({"type": "object", "properties": {"spec": widget_spec(name)}});
            version(name, (served, storage), schema, json!({}))
        };
        match self {
            Self::First => json!([version("v1", true, true)]),
            Self::Both => json!([version("v1", true, true), version("v2", true, false)]),
            Self::Moved => json!([version("v1", true, false), version("v2", true, true)]),
            Self::Second => json!([version("v1", false, false), version("v2", true, true)]),
        }
    }
}

/// Removes from a child what the API server adds to the spec of each one: the addresses of a Service, and what a Job finds its Pods by.
pub fn without_what_the_server_adds(child: &mut Value) {
    let is_job = child["kind"] == ChildKind::Job.as_str();
    let (of_spec, of_labels): (&[&str], &[&str]) = match is_job {
        true => (
            &["selector"],
            &["batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name", "controller-uid", "job-name"],
        ),
        false => (&["clusterIP", "clusterIPs"], &[]),
    };
    let mut remove = |pointer: &str, fields: &[&str]| {
        if let Some(object) = child.pointer_mut(pointer).and_then(Value::as_object_mut) {
            object.retain(|name, _| !fields.contains(&&**name));
        }
    };
    remove("/spec", of_spec);
    remove("/spec/template/metadata/labels", of_labels);
}

/// The CRD of the kind that the plugin reconciles.
pub fn object_crd(scope: Scope) -> Value {
    let schema = json!({"type": "object", "properties": {"spec": object_spec(scope), "status": object_status()}});
    let plural = format!("{}s", scope.kind().to_lowercase());
    crd(scope.kind(), &plural, scope, json!([version("v1", (true, true), schema, json!({"status": {}}))]))
}

/// The schema of the spec of an object.
pub fn object_spec(scope: Scope) -> Value {
    let kinds: Vec<_> = ChildKind::all(scope).iter().map(|kind| kind.as_str()).collect();
    let mut child = json!({"type": "object", "required": ["kind", "name", "value"], "properties": {
        "kind": {"type": "string", "enum": kinds}, "name": {"type": "string", "enum": ["a", "b", "c"]},
        "value": {"type": "integer", "minimum": 0, "maximum": 7},
        "extra": {"type": "boolean"}, "keep": {"type": "boolean"},
    }});
    let mut keys = vec!["kind", "name"];
    if scope == Scope::Cluster {
        child["properties"]["place"] = json!({"type": "string", "enum": Place::ALL, "default": Place::Home});
        keys.push("place");
    }
    json!({"type": "object", "properties": {
        "children": {
            "type": "array", "items": child, "maxItems": 6,
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": keys,
        },
        "follows": {"type": "string", "enum": ["followed"]},
        "awaits": {"type": "boolean"},
        "requeueAfter": {"type": "integer", "nullable": true, "minimum": 30, "maximum": 600},
    }})
}

/// The schema of the status of an object.
pub fn object_status() -> Value {
    let condition = json!({"type": "object", "required": ["type", "status"], "properties": {
        "type": {"type": "string"}, "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "reason": {"type": "string"}, "message": {"type": "string"},
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "observedGeneration": {"type": "integer", "minimum": 0},
    }});
    json!({"type": "object", "properties": {
        "observedGeneration": {"type": "integer", "minimum": 0}, "children": {"type": "integer", "minimum": 0},
        "followed": {"type": "string", "nullable": true},
        "conditions": {
            "type": "array", "items": condition,
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
        },
    }})
}

/// The CRD of a kind of children.
pub fn widget_crd(versions: WidgetVersions) -> Value {
    crd("Widget", "widgets", Scope::Namespaced, versions.to_value())
}

/// The CRD of a kind of children without namespaces.
pub fn cluster_widget_crd() -> Value {
    let schema = json!({"type": "object", "properties": {"spec": widget_spec("v1")}});
    let versions = json!([version("v1", (true, true), schema, json!({}))]);
    crd("ClusterWidget", "clusterwidgets", Scope::Cluster, versions)
}

/// The schema of the spec of a Widget in a version.
pub fn widget_spec(version: &str) -> Value {
    let mut spec = json!({"type": "object", "properties": {
        "size": {"type": "integer", "minimum": 0, "maximum": 99},
        "colour": {"type": "string", "enum": ["red", "green", "blue"], "nullable": true},
    }});
    if version != "v1" {
        spec["properties"]["weight"] = json!({"type": "integer", "minimum": 0, "default": 1});
    }
    spec
}

fn version(name: &str, (served, storage): (bool, bool), schema: Value, subresources: Value) -> Value {
    json!({
        "name": name, "served": served, "storage": storage, "subresources": subresources,
        "schema": {"openAPIV3Schema": schema},
    })
}

fn crd(kind: &str, plural: &str, scope: Scope, versions: Value) -> Value {
    let scope = match scope {
        Scope::Namespaced => "Namespaced",
        Scope::Cluster => "Cluster",
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{GROUP}")},
        "spec": {
            "group": GROUP, "scope": scope,
            "names": {
                "kind": kind, "listKind": format!("{kind}List"), "plural": plural,
                "singular": kind.to_lowercase(),
            },
            "versions": versions,
        },
    })
}
