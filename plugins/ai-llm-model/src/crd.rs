//! The CRD of `LLMModel` of `ai.example.com`, made from the API types. It is compiled only to write the file under `crds/` and to check
//! that file; neither the plugin nor the host needs it.

use crate::api::{LlmModelSpec, ReportedStatus};
use llm_serving::crd::{add_model_rules, add_serving_rules};
use pilothouse_pods::crd::add_resource_rules;
use pilothouse_sdk::crd::{Column, Definition, definition, schema_of, status_of, without_defaults};
use serde_json::{Value, json};

/// The comment at the head of the file.
const HEADER: &str = "\
# The kind LLMModel of ai.example.com, made from plugins/ai-llm-model/src/api.rs. Do not edit; make it anew with
#   make crds
";

/// The description of `status.conditions`.
const CONDITIONS: &str = "How the server is: Ready, Progressing, Degraded, Available, PodsHealthy, and the host's own.";

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
        group: "ai.example.com",
        version: "v1",
        kind: "LLMModel",
        short_names: &["llm"],
        spec_replicas_path: Some(".spec.replicas"),
        columns: &[Column { name: "MODEL", value_type: "string", json_path: ".spec.modelName" }],
        wide_columns: &[
            Column { name: "Desired", value_type: "integer", json_path: ".spec.replicas" },
            Column { name: "Ready", value_type: "integer", json_path: ".status.readyReplicas" },
            Column {
                name: "Status",
                value_type: "string",
                json_path: ".status.conditions[?(@.type==\"Ready\")].reason",
            },
            Column { name: "Age", value_type: "date", json_path: ".metadata.creationTimestamp" },
        ],
        schema: schema(),
    })
}

fn schema() -> Value {
    let mut spec = without_defaults(schema_of::<LlmModelSpec>());
    spec["required"] = json!(["modelName"]);
    // `kubectl scale` and autoscalers change the field, so it must be there.
    spec["properties"]["replicas"]["default"] = json!(1);
    add_model_rules(&mut spec);
    add_serving_rules(&mut spec);
    add_resource_rules(&mut spec);
    json!({
        "description": "A large language model and the Pods that serve it.",
        "type": "object",
        "required": ["spec"],
        "properties": { "spec": spec, "status": without_defaults(status_of::<ReportedStatus>(CONDITIONS)) },
    })
}
