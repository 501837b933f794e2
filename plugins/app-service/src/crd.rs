//! The CRD of `AppService`, made from the API types. It is only compiled to write the file under `crds/` and to check that
//! file; neither the plugin nor the host needs it.

use crate::api::{AppServiceSpec, AppServiceStatus};
use pilothouse_sdk::crd::{schema_of, status_of};
use serde_json::{Value, json};

/// What stands above the YAML.
const HEADER: &str = "\
# The kind AppService, made from plugins/app-service/src/api.rs. Do not edit; make it anew with
#   cargo run -p app-service --example crd
";

/// What the conditions tell.
const CONDITIONS: &str = "How the application is: Ready, Progressing, Degraded, Available, and the host's own.";

/// The file's text.
///
/// # Errors
/// The schema cannot be written as YAML, which no schema of ours is.
pub fn yaml() -> Result<String, pilothouse_sdk::Error> {
    pilothouse_sdk::crd::yaml(HEADER, &crd())
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
        "properties": { "spec": schema_of::<AppServiceSpec>(), "status": status_of::<AppServiceStatus>(CONDITIONS) },
    })
}
