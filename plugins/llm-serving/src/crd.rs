//! What the CRDs of the serving kinds share: columns, and rules for fields that they share. It is compiled only to write and check the
//! files under `crds/`.

use crate::container::RESERVED;
use pilothouse_pods::crd::{add_environment_rules, plain_path};
use pilothouse_sdk::crd::exactly_one_of;
use serde_json::{Value, json};

/// Adds the rules for the fields of [`crate::api::ModelFields`] to the schema of a spec.
pub fn add_model_rules(spec: &mut Value) {
    add_environment_rules(spec, &RESERVED, "the server gets this variable from other fields");
    let fields = &mut spec["properties"];
    fields["loraAdapters"]["x-kubernetes-list-type"] = json!("map");
    fields["loraAdapters"]["x-kubernetes-list-map-keys"] = json!(["name"]);
    fields["modelPath"]["x-kubernetes-validations"] = plain_path("");
    fields["modelSource"]["x-kubernetes-validations"] = plain_path(".uri");
}

/// Adds the rules for the fields of [`crate::api::ServingFields`] to the schema of a spec.
pub fn add_serving_rules(spec: &mut Value) {
    spec["properties"]["disruptionBudget"]["x-kubernetes-validations"] =
        exactly_one_of(&["maxUnavailable", "minAvailable"]);
}
