//! The CRD of `ModelDeployment`, made from the API types. It is compiled only to write the file under `crds/` and to check that file;
//! neither the plugin nor the host needs it.

use crate::api::{ModelDeploymentSpec, ReportedStatus};
use llm_serving::crd::{add_model_rules, add_serving_rules};
use pilothouse_pods::crd::add_resource_rules;
use pilothouse_sdk::crd::{Column, Definition, Rule, definition, rules, schema_of, status_of, without_defaults};
use serde_json::{Value, json};

/// The comment at the head of the file.
const HEADER: &str = "\
# The kind ModelDeployment, made from plugins/model-deployment/src/api.rs. Do not edit; make it anew with
#   make crds
";

/// The description of `status.conditions`.
const CONDITIONS: &str = "How the servers are: Ready, Progressing, Degraded, Available, PodsHealthy, SLAMet, SLAUnverified, and the \
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
        kind: "ModelDeployment",
        short_names: &["mdep"],
        spec_replicas_path: Some(".spec.replicas"),
        columns: &[
            Column { name: "Model", value_type: "string", json_path: ".spec.model" },
            Column { name: "Replicas", value_type: "integer", json_path: ".status.replicas" },
            Column { name: "Ready", value_type: "integer", json_path: ".status.readyReplicas" },
            Column { name: "SLA", value_type: "string", json_path: ".status.conditions[?(@.type==\"SLAMet\")].status" },
            Column { name: "Latency", value_type: "string", json_path: ".status.observedLatency" },
            Column { name: "Age", value_type: "date", json_path: ".metadata.creationTimestamp" },
        ],
        wide_columns: &[
            Column { name: "Max-Latency", value_type: "string", json_path: ".spec.sla.maxLatency" },
            Column {
                name: "Status",
                value_type: "string",
                json_path: ".status.conditions[?(@.type==\"Ready\")].reason",
            },
        ],
        schema: schema(),
    })
}

fn schema() -> Value {
    let mut spec = without_defaults(schema_of::<ModelDeploymentSpec>());
    spec["required"] = json!(["model"]);
    // `kubectl scale` and autoscalers change the field, so it must be there.
    spec["properties"]["replicas"]["default"] = json!(1);
    add_model_rules(&mut spec);
    add_serving_rules(&mut spec);
    add_resource_rules(&mut spec);
    spec["properties"]["autoscaling"]["x-kubernetes-validations"] = rules(&[Rule {
        expression: "!has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
        message: "minReplicas must be at most maxReplicas",
    }]);
    json!({
        "description": "A large language model, served within a latency by as many Pods as that takes.",
        "type": "object",
        "required": ["spec"],
        "properties": { "spec": spec, "status": without_defaults(status_of::<ReportedStatus>(CONDITIONS)) },
    })
}
