//! The custom kinds of the simulation, as CustomResourceDefinitions.

use serde_json::{Value, json};

use crate::{paths::KindPath, plugin::version::KIND};

/// The name of the CRD of Widgets.
pub const WIDGETS: &str = "widgets.simulation.pilothouse.dev";

/// The kind that the plugin reconciles.
pub const SIMULATEDS: &str = "simulateds.simulation.pilothouse.dev";

/// CRDs.
pub const DEFINITIONS: &str = "customresourcedefinitions.apiextensions.k8s.io";

/// Leases.
pub const LEASES: &str = "leases.coordination.k8s.io";

/// The path of CRDs.
pub fn crds() -> KindPath {
    KindPath::cluster_scoped("apiextensions.k8s.io/v1", "CustomResourceDefinition")
}

/// The CRD of the kind that the plugin reconciles.
pub fn simulated_crd() -> Value {
    let child = json!({"type": "object", "required": ["kind", "name", "value"], "properties": {
        "kind": {"type": "string"}, "name": {"type": "string"}, "value": {"type": "integer", "minimum": 0},
        "extra": {"type": "boolean"}, "keep": {"type": "boolean"},
    }});
    let spec = json!({"type": "object", "properties": {
        "children": {"type": "array", "items": child}, "follows": {"type": "string"}, "awaits": {"type": "boolean"},
        "requeueAfter": {"type": "integer"},
    }});
    let condition = json!({"type": "object", "required": ["type", "status"], "properties": {
        "type": {"type": "string"}, "status": {"type": "string"}, "reason": {"type": "string"},
        "message": {"type": "string"}, "lastTransitionTime": {"type": "string", "format": "date-time"},
        "observedGeneration": {"type": "integer"},
    }});
    let status = json!({"type": "object", "properties": {
        "observedGeneration": {"type": "integer"}, "children": {"type": "integer"},
        "followed": {"type": "string", "nullable": true},
        "conditions": {
            "type": "array", "items": condition,
            "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"],
        },
    }});
    crd(KIND, "simulateds", json!({"spec": spec, "status": status}), json!({"status": {}}))
}

/// The CRD of a kind of children.
pub fn widget_crd() -> Value {
    let spec = json!({"type": "object", "properties": {"size": {"type": "integer"}, "colour": {"type": "string"}}});
    crd("Widget", "widgets", json!({"spec": spec}), json!({}))
}

fn crd(kind: &str, plural: &str, properties: Value, subresources: Value) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.simulation.pilothouse.dev")},
        "spec": {
            "group": "simulation.pilothouse.dev", "scope": "Namespaced",
            "names": {
                "kind": kind, "listKind": format!("{kind}List"), "plural": plural,
                "singular": kind.to_lowercase(),
            },
            "versions": [{
                "name": "v1", "served": true, "storage": true, "subresources": subresources,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
            }],
        },
    })
}
