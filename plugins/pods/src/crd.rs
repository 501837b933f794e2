//! Rules of CRDs for fields of containers. It is compiled only to write and check the files under `crds/`.

use pilothouse_sdk::crd::{Rule, exactly_one_of, rules};
use serde_json::{Value, json};

/// The API server refuses Pods whose requests exceed their limits. Without this rule that would come to light only after other
/// children exist.
const REQUESTS_WITHIN_LIMITS: &str = "!has(self.requests) || !has(self.limits) || self.requests.all(name, !(name in \
                                      self.limits) || quantity(string(self.requests[name])).compareTo(quantity(string(\
                                      self.limits[name]))) <= 0)";

/// Adds the rules for `env` and `envFrom` to the schema of a spec. `reserved` are the names that the plugin sets itself, and `why` says
/// so.
pub fn add_environment_rules(spec: &mut Value, reserved: &[&str], why: &str) {
    let fields = &mut spec["properties"];
    fields["env"]["x-kubernetes-list-type"] = json!("map");
    fields["env"]["x-kubernetes-list-map-keys"] = json!(["name"]);
    fields["env"]["items"]["x-kubernetes-validations"] = rules(&[
        Rule { expression: &format!("!(self.name in {})", json!(reserved)), message: why },
        Rule { expression: "!(has(self.value) && has(self.valueFrom))", message: "give value or valueFrom, not both" },
    ]);
    fields["env"]["items"]["properties"]["valueFrom"]["x-kubernetes-validations"] =
        exactly_one_of(&["configMapKeyRef", "secretKeyRef", "fieldRef"]);
    fields["envFrom"]["items"]["x-kubernetes-validations"] = exactly_one_of(&["configMapRef", "secretRef"]);
}

/// Adds the rule for compute resources to the schema of a spec.
pub fn add_resource_rules(spec: &mut Value) {
    spec["properties"]["resources"]["x-kubernetes-validations"] = rules(&[Rule {
        expression: REQUESTS_WITHIN_LIMITS,
        message: "requests must be at most limits, or no Pod can be made",
    }]);
}

/// The rule that a path has no parts that lead elsewhere. `field` is where the path is, such as `.uri`; empty for the field itself.
pub fn plain_path(field: &str) -> Value {
    rules(&[Rule {
        expression: &format!("!self{field}.split('/').exists(part, part in ['.', '..'])"),
        message: "the path cannot have '.' or '..' in it",
    }])
}
