//! The CRD of `AppService`, made from the API types. It is only compiled to write the file under `crds/` and to check that
//! file; neither the plugin nor the host needs it.

use crate::api::{AppServiceSpec, AppServiceStatus};
use pilothouse_sdk::crd::{Definition, definition, schema_of, status_of};
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
    definition(Definition {
        group: "apps.example.com",
        version: "v1",
        kind: "AppService",
        short_names: &["appsvc"],
        replicas: ".spec.replicas",
        columns: &[
            ("Image", "string", ".spec.image"),
            ("Desired", "integer", ".spec.replicas"),
            ("Ready", "integer", ".status.readyReplicas"),
            ("Status", "string", ".status.conditions[?(@.type==\"Ready\")].reason"),
            ("Age", "date", ".metadata.creationTimestamp"),
        ],
        schema: schema(),
    })
}

fn schema() -> Value {
    json!({
        "description": "A stateless web application: a Deployment and a Service in front of it.",
        "type": "object",
        "required": ["spec"],
        "properties": { "spec": schema_of::<AppServiceSpec>(), "status": status_of::<AppServiceStatus>(CONDITIONS) },
    })
}
