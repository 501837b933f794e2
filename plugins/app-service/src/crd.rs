//! The CRD of `AppService`, made from the API types. It is compiled only to write the file under `crds/` and to check that
//! file; neither the plugin nor the host needs it.

use crate::api::{AppServiceSpec, AppServiceStatus};
use pilothouse_sdk::crd::{Column, Definition, definition, schema_of, status_of};
use serde_json::{Value, json};

/// The comment at the head of the file.
const HEADER: &str = "\
# The kind AppService, made from plugins/app-service/src/api.rs. Do not edit; make it anew with
#   cargo run -p app-service --example crd
";

/// The description of `status.conditions`.
const CONDITIONS: &str = "How the application is: Ready, Progressing, Degraded, Available, and the host's own.";

/// The file's text.
///
/// # Errors
/// The schema cannot be written as YAML.
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
        spec_replicas_path: Some(".spec.replicas"),
        columns: &[
            Column { name: "Image", value_type: "string", json_path: ".spec.image" },
            Column { name: "Desired", value_type: "integer", json_path: ".spec.replicas" },
            Column { name: "Ready", value_type: "integer", json_path: ".status.readyReplicas" },
            Column {
                name: "Status",
                value_type: "string",
                json_path: ".status.conditions[?(@.type==\"Ready\")].reason",
            },
            Column { name: "Age", value_type: "date", json_path: ".metadata.creationTimestamp" },
        ],
        wide_columns: &[],
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
