//! The CRD of `AppService`, made from the API types. It is only compiled to write the file under `crds/` and to check that
//! file; neither the plugin nor the host needs it.

use crate::api::{AppServiceSpec, AppServiceStatus};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use schemars::transform::{RecursiveTransform, Transform};
use serde_json::{Value, json};

/// What stands above the YAML.
const HEADER: &str = "\
# The kind AppService, made from plugins/app-service/src/api.rs. Do not edit; make it anew with
#   cargo run -p app-service --example crd
";

/// The file's text.
///
/// # Errors
/// The schema cannot be written as YAML, which no schema of ours is.
pub fn yaml() -> Result<String, serde_saphyr::SerializeError> {
    Ok(format!("{HEADER}{}", serde_saphyr::to_string(&crd())?))
}

/// The CRD.
pub fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": { "name": "appservices.apps.example.com" },
        "spec": {
            "group": "apps.example.com",
            "scope": "Namespaced",
            "names": {
                "kind": "AppService",
                "listKind": "AppServiceList",
                "plural": "appservices",
                "singular": "appservice",
                "shortNames": ["appsvc"],
            },
            "versions": [{
                "name": "v1",
                "served": true,
                "storage": true,
                "subresources": {
                    "status": {},
                    "scale": {
                        "specReplicasPath": ".spec.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".status.selector",
                    },
                },
                "additionalPrinterColumns": columns(),
                "schema": { "openAPIV3Schema": schema() },
            }],
        },
    })
}

fn columns() -> Value {
    json!([
        { "name": "Image", "type": "string", "jsonPath": ".spec.image" },
        { "name": "Desired", "type": "integer", "jsonPath": ".spec.replicas" },
        { "name": "Ready", "type": "integer", "jsonPath": ".status.readyReplicas" },
        { "name": "Status", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].reason" },
        { "name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp" },
    ])
}

fn schema() -> Value {
    json!({
        "description": "A stateless web application: a Deployment and a Service in front of it.",
        "type": "object",
        "required": ["spec"],
        "properties": { "spec": schema_of::<AppServiceSpec>(), "status": status_schema() },
    })
}

/// The plugin's status and what the host adds. Nothing is required: the host reports before the plugin does.
fn status_schema() -> Value {
    let mut schema = schema_of::<AppServiceStatus>();
    if let Some(fields) = schema.as_object_mut() {
        fields.remove("required");
    }
    schema["properties"]["observedGeneration"] = json!({
        "description": "The generation of the spec that this status is about.",
        "type": "integer",
        "format": "int64",
    });
    schema["properties"]["conditions"] = json!({
        "description": "How the application is: Ready, Progressing, Degraded, Available, and the host's own.",
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": condition_schema(),
    });
    schema
}

fn condition_schema() -> Value {
    json!({
        "description": "One aspect of how the application is.",
        "type": "object",
        "required": ["type", "status", "lastTransitionTime", "reason", "message"],
        "properties": {
            "type": { "description": "The aspect, in CamelCase.", "type": "string", "maxLength": 316 },
            "status": {
                "description": "Whether it holds.",
                "type": "string",
                "enum": ["True", "False", "Unknown"],
            },
            "reason": {
                "description": "One CamelCase word for programs.",
                "type": "string",
                "minLength": 1,
                "maxLength": 1024,
            },
            "message": {
                "description": "A sentence for people.",
                "type": "string",
                "maxLength": 32768,
            },
            "lastTransitionTime": {
                "description": "When the status last changed.",
                "type": "string",
                "format": "date-time",
            },
            "observedGeneration": {
                "description": "The generation of the spec that this condition is about.",
                "type": "integer",
                "format": "int64",
                "minimum": 0,
            },
        },
    })
}

/// A type's schema in the form that the API server takes: no references, no titles, descriptions on one line.
fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    RecursiveTransform(|schema: &mut schemars::Schema| {
        schema.remove("title");
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        }
    })
    .transform(&mut schema);
    schema.to_value()
}
