//! The CRD of `LLMDeployment`, made from the API types. It is compiled only to write the file under `crds/` and to check that file;
//! neither the plugin nor the host needs it.

use crate::api::{LlmDeploymentSpec, ReportedStatus};
use llm_serving::crd::add_serving_rules;
use pilothouse_sdk::crd::{Column, Definition, definition, schema_of, status_of, without_defaults};
use serde_json::{Value, json};

/// The comment at the head of the file.
const HEADER: &str = "\
# The kind LLMDeployment, made from plugins/llm-deployment/src/api.rs. Do not edit; make it anew with
#   make crds
";

/// The description of `status.conditions`.
const CONDITIONS: &str = "How the server is: ModelResolved, Ready, Progressing, Degraded, Available, PodsHealthy, and the \
                          host's own.";

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
        group: "llm.example.com",
        version: "v1alpha1",
        kind: "LLMDeployment",
        short_names: &["llmdep"],
        spec_replicas_path: Some(".spec.replicas"),
        columns: &[
            Column { name: "Model", value_type: "string", json_path: ".spec.modelRef" },
            Column { name: "Desired", value_type: "integer", json_path: ".spec.replicas" },
            Column { name: "Ready", value_type: "integer", json_path: ".status.readyReplicas" },
            Column {
                name: "Available",
                value_type: "string",
                json_path: ".status.conditions[?(@.type==\"Available\")].status",
            },
            Column { name: "Age", value_type: "date", json_path: ".metadata.creationTimestamp" },
        ],
        wide_columns: &[Column {
            name: "Status",
            value_type: "string",
            json_path: ".status.conditions[?(@.type==\"Ready\")].reason",
        }],
        schema: schema(),
    })
}

fn schema() -> Value {
    let mut spec = without_defaults(schema_of::<LlmDeploymentSpec>());
    spec["required"] = json!(["modelRef", "replicas"]);
    spec["properties"]["port"]["default"] = json!(8080);
    add_serving_rules(&mut spec);
    json!({
        "description": "Pods that serve a model which an LLMModel describes, and a Service in front of them.",
        "type": "object",
        "required": ["spec"],
        "properties": { "spec": spec, "status": without_defaults(status_of::<ReportedStatus>(CONDITIONS)) },
    })
}
