//! The CRD of `LLMModel` of `llm.example.com`, made from the API types. It is compiled only to write the file under `crds/` and to check
//! that file; neither the plugin nor the host needs it.

use crate::api::{LlmModelSpec, LlmModelStatus};
use llm_serving::crd::add_model_rules;
use pilothouse_sdk::crd::{Column, Definition, definition, schema_of, status_of, without_defaults};
use serde_json::{Value, json};

/// The comment at the head of the file.
const HEADER: &str = "\
# The kind LLMModel of llm.example.com, made from plugins/llm-model/src/api.rs. Do not edit; make it anew with
#   make crds
";

/// The description of `status.conditions`.
const CONDITIONS: &str = "How the model is: Ready, and the host's own.";

/// The file's text.
///
/// # Errors
/// The schema cannot be written as YAML.
pub fn yaml() -> Result<String, pilothouse_sdk::Error> {
    pilothouse_sdk::crd::yaml(HEADER, &crd())
}

/// The CRD. It has no short name: `llm` is that of the kind of the same name of `ai.example.com`.
pub fn crd() -> Value {
    definition(Definition {
        group: "llm.example.com",
        version: "v1alpha1",
        kind: "LLMModel",
        short_names: &[],
        spec_replicas_path: None,
        columns: &[
            Column { name: "Model", value_type: "string", json_path: ".spec.modelName" },
            Column { name: "Image", value_type: "string", json_path: ".spec.image" },
            Column { name: "Age", value_type: "date", json_path: ".metadata.creationTimestamp" },
        ],
        wide_columns: &[Column { name: "Used-By", value_type: "string", json_path: ".status.referencedBy" }],
        schema: schema(),
    })
}

fn schema() -> Value {
    let mut spec = without_defaults(schema_of::<LlmModelSpec>());
    spec["required"] = json!(["modelName", "image"]);
    add_model_rules(&mut spec);
    json!({
        "description": "A large language model, which LLMDeployments serve.",
        "type": "object",
        "required": ["spec"],
        "properties": { "spec": spec, "status": without_defaults(status_of::<LlmModelStatus>(CONDITIONS)) },
    })
}
