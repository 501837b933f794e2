//! What the CRDs of the serving kinds share: columns, and rules for fields that they share. It is compiled only to write and check the
//! files under `crds/`.

use crate::container::RESERVED;
use pilothouse_sdk::crd::{Rule, exactly_one_of, rules};
use serde_json::{Value, json};

/// The API server refuses Pods whose requests exceed their limits. Without this rule that would come to light only after other
/// children exist.
const REQUESTS_WITHIN_LIMITS: &str = "!has(self.requests) || !has(self.limits) || self.requests.all(name, !(name in \
                                      self.limits) || quantity(string(self.requests[name])).compareTo(quantity(string(\
                                      self.limits[name]))) <= 0)";

/// Adds the rules for the fields of [`crate::api::ModelFields`] to the schema of a spec.
pub fn add_model_rules(spec: &mut Value) {
    let fields = &mut spec["properties"];
    fields["env"]["x-kubernetes-list-type"] = json!("map");
    fields["env"]["x-kubernetes-list-map-keys"] = json!(["name"]);
    fields["env"]["items"]["x-kubernetes-validations"] = rules(&[
        Rule {
            expression: &format!("!(self.name in {})", json!(RESERVED)),
            message: "the server gets this variable from other fields",
        },
        Rule { expression: "!(has(self.value) && has(self.valueFrom))", message: "give value or valueFrom, not both" },
    ]);
    fields["env"]["items"]["properties"]["valueFrom"]["x-kubernetes-validations"] =
        exactly_one_of(&["configMapKeyRef", "secretKeyRef", "fieldRef"]);
    fields["envFrom"]["items"]["x-kubernetes-validations"] = exactly_one_of(&["configMapRef", "secretRef"]);
    fields["loraAdapters"]["x-kubernetes-list-type"] = json!("map");
    fields["loraAdapters"]["x-kubernetes-list-map-keys"] = json!(["name"]);
    let no_dots = |field: &str| format!("!self{field}.split('/').exists(part, part in ['.', '..'])");
    let message = "the path cannot have '.' or '..' in it";
    fields["modelPath"]["x-kubernetes-validations"] = rules(&[Rule { expression: &no_dots(""), message }]);
    fields["modelSource"]["x-kubernetes-validations"] = rules(&[Rule { expression: &no_dots(".uri"), message }]);
}

/// Adds the rules for the fields of [`crate::api::ServingFields`] to the schema of a spec.
pub fn add_serving_rules(spec: &mut Value) {
    spec["properties"]["disruptionBudget"]["x-kubernetes-validations"] =
        exactly_one_of(&["maxUnavailable", "minAvailable"]);
}

/// Adds the rule for compute resources to the schema of a spec.
pub fn add_resource_rules(spec: &mut Value) {
    spec["properties"]["resources"]["x-kubernetes-validations"] = rules(&[Rule {
        expression: REQUESTS_WITHIN_LIMITS,
        message: "requests must be at most limits, or no Pod can be made",
    }]);
}
