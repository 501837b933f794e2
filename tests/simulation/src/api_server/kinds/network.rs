//! NetworkPolicies and PodDisruptionBudgets.

use serde_json::{Value, json};

use super::{
    Strategy,
    edit::{at, begin, copy_field, default_to, elements_at, object_at, raise_generation},
    selector,
};
use crate::api_server::names::NameRule;

/// NetworkPolicies.
pub(super) static NETWORK_POLICY: Strategy = Strategy {
    has_generation: true,
    default: |object| {
        for rules in ["ingress", "egress"] {
            for rule in elements_at(object, &["spec", rules]) {
                for port in rule.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
                    if let Some(port) = port.as_object_mut() {
                        default_to(port, "protocol", "TCP");
                    }
                }
            }
        }
        let has_egress = at(object, &["spec", "egress"]).as_array().is_some_and(|rules| !rules.is_empty());
        let types = if has_egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
        if let Some(spec) = object_at(object, &["spec"]) {
            default_to(spec, "policyTypes", types);
        }
    },
    prepare_create: |object, _, _| object["metadata"]["generation"] = 1.into(),
    prepare_update: |new, old, _, _| raise_generation(new, old, &[&["spec"]]),
    validate: |object, _, causes| {
        selector::check_selector(at(object, &["spec", "podSelector"]), "spec.podSelector", causes);
    },
    ..Strategy::USUAL
};

/// PodDisruptionBudgets.
pub(super) static DISRUPTION_BUDGET: Strategy = Strategy {
    has_generation: true,
    unconditional_update: false,
    names: NameRule::PathSegment,
    knows_finalizers: false,
    checks_metadata_last: true,
    prepare_create: |object, _, _| {
        let status = json!({"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0});
        begin(object, status);
    },
    prepare_update: |new, old, _, _| {
        copy_field(old, new, "status");
        raise_generation(new, old, &[&["spec"]]);
    },
    validate: |object, _, causes| {
        let spec = &object["spec"];
        if !spec["minAvailable"].is_null() && !spec["maxUnavailable"].is_null() {
            causes.invalid("spec", &Value::Null, "minAvailable and maxUnavailable cannot be both set");
        }
        selector::check_selector(&spec["selector"], "spec.selector", causes);
    },
    ..Strategy::USUAL
};
