//! Deployments, StatefulSets and ReplicaSets.

use serde_json::{Value, json};

use super::{
    Strategy,
    edit::{at, begin, copy_field, default_to, object_at, raise_generation},
    pod_spec, selector,
};
use crate::api_server::causes::Causes;

/// Deployments.
pub(super) static DEPLOYMENT: Strategy = Strategy {
    has_generation: true,
    default: |object| {
        default_template(object);
        let Some(spec) = object_at(object, &["spec"]) else { return };
        default_to(spec, "replicas", 1);
        default_to(spec, "revisionHistoryLimit", 10);
        default_to(spec, "progressDeadlineSeconds", 600);
        default_to(spec, "strategy", json!({}));
        let Some(strategy) = object_at(object, &["spec", "strategy"]) else { return };
        default_to(strategy, "type", "RollingUpdate");
        if strategy.get("type").is_some_and(|kind| kind == "RollingUpdate")
            && let Some(rolling) = object_at(object, &["spec", "strategy", "rollingUpdate"])
        {
            default_to(rolling, "maxUnavailable", "25%");
            default_to(rolling, "maxSurge", "25%");
        }
    },
    prepare_create: |object, _, _| begin(object, json!({})),
    prepare_update: |new, old, _, _| {
        copy_field(old, new, "status");
        // Annotations are copied to the ReplicaSets, so they count.
        raise_generation(new, old, &[&["spec"], &["metadata", "annotations"]]);
    },
    validate: |object, _, causes| {
        check_workload(object, causes);
        let strategy = &object["spec"]["strategy"];
        match strategy["type"].as_str().unwrap_or_default() {
            "Recreate" if strategy["rollingUpdate"].is_object() => {
                let why = "may not be specified when strategy `type` is 'Recreate'";
                causes.forbidden("spec.strategy.rollingUpdate", why);
            }
            "Recreate" | "RollingUpdate" => {}
            _ => causes.not_supported("spec.strategy", strategy, &["Recreate", "RollingUpdate"]),
        }
        let is_zero = |name: &str| {
            let value = &strategy["rollingUpdate"][name];
            value.as_i64() == Some(0) || value.as_str().is_some_and(|text| text.trim_end_matches('%').parse() == Ok(0))
        };
        if strategy["rollingUpdate"].is_object() && is_zero("maxUnavailable") && is_zero("maxSurge") {
            let field = "spec.strategy.rollingUpdate.maxUnavailable";
            causes.invalid(field, &strategy["rollingUpdate"]["maxUnavailable"], "may not be 0 when `maxSurge` is 0");
        }
        check_not_negative(&object["spec"], &["replicas", "minReadySeconds", "revisionHistoryLimit"], causes);
        let deadline = &object["spec"]["progressDeadlineSeconds"];
        let ready = object["spec"]["minReadySeconds"].as_i64().unwrap_or_default();
        if deadline.as_i64().is_some_and(|deadline| deadline <= ready) {
            causes.invalid("spec.progressDeadlineSeconds", deadline, "must be greater than minReadySeconds");
        }
    },
    validate_update: |new, old, _, causes| check_same(new, old, &["selector"], causes),
    validate_status: |new, old, _, causes| check_counts(new, old, causes),
    ..Strategy::USUAL
};

/// StatefulSets.
pub(super) static STATEFUL_SET: Strategy = Strategy {
    has_generation: true,
    default: |object| {
        default_template(object);
        let Some(spec) = object_at(object, &["spec"]) else { return };
        default_to(spec, "podManagementPolicy", "OrderedReady");
        default_to(spec, "replicas", 1);
        default_to(spec, "revisionHistoryLimit", 10);
        let Some(strategy) = object_at(object, &["spec", "updateStrategy"]) else { return };
        if !strategy.contains_key("type") {
            strategy.insert("type".to_owned(), "RollingUpdate".into());
            default_to(strategy, "rollingUpdate", json!({}));
        }
        let is_rolling = strategy.get("type").is_some_and(|kind| kind == "RollingUpdate");
        if let Some(rolling) = strategy.get_mut("rollingUpdate").and_then(Value::as_object_mut).filter(|_| is_rolling) {
            default_to(rolling, "partition", 0);
        }
        let Some(retention) = object_at(object, &["spec", "persistentVolumeClaimRetentionPolicy"]) else { return };
        default_to(retention, "whenDeleted", "Retain");
        default_to(retention, "whenScaled", "Retain");
    },
    prepare_create: |object, _, _| begin(object, json!({"replicas": 0, "availableReplicas": 0})),
    prepare_update: |new, old, _, _| {
        copy_field(old, new, "status");
        raise_generation(new, old, &[&["spec"]]);
    },
    validate: |object, _, causes| {
        check_workload(object, causes);
        check_not_negative(&object["spec"], &["replicas", "minReadySeconds", "revisionHistoryLimit"], causes);
        let strategy = &object["spec"]["updateStrategy"];
        match strategy["type"].as_str().unwrap_or_default() {
            "OnDelete" if strategy["rollingUpdate"].is_object() => {
                let why = "only allowed for updateStrategy 'RollingUpdate'";
                causes.invalid("spec.updateStrategy.rollingUpdate", &strategy["rollingUpdate"], why);
            }
            "OnDelete" | "RollingUpdate" => {}
            "" => causes.required("spec.updateStrategy", ""),
            _ => causes.invalid("spec.updateStrategy", strategy, "must be 'RollingUpdate' or 'OnDelete'"),
        }
    },
    validate_update: |new, old, _, causes| {
        let changeable = [
            "replicas",
            "ordinals",
            "template",
            "updateStrategy",
            "revisionHistoryLimit",
            "persistentVolumeClaimRetentionPolicy",
            "minReadySeconds",
        ];
        let fixed = |object: &Value| {
            let mut spec = object["spec"].clone();
            if let Some(spec) = spec.as_object_mut() {
                changeable.iter().for_each(|name| drop(spec.remove(*name)));
            }
            spec
        };
        if fixed(new) != fixed(old) {
            causes.forbidden("spec", "updates to statefulset spec for other fields than some are forbidden");
        }
    },
    validate_status: |new, old, _, causes| check_counts(new, old, causes),
    ..Strategy::USUAL
};

/// ReplicaSets.
pub(super) static REPLICA_SET: Strategy = Strategy {
    has_generation: true,
    default: |object| {
        default_template(object);
        if let Some(spec) = object_at(object, &["spec"]) {
            default_to(spec, "replicas", 1);
        }
    },
    prepare_create: |object, _, _| begin(object, json!({"replicas": 0})),
    prepare_update: |new, old, _, _| {
        copy_field(old, new, "status");
        raise_generation(new, old, &[&["spec"]]);
    },
    validate: |object, _, causes| {
        check_workload(object, causes);
        check_not_negative(&object["spec"], &["replicas", "minReadySeconds"], causes);
    },
    validate_update: |new, old, _, causes| check_same(new, old, &["selector"], causes),
    ..Strategy::USUAL
};

fn default_template(object: &mut Value) {
    if object_at(object, &["spec", "template", "spec"]).is_some() {
        pod_spec::default_spec(&mut object["spec"]["template"]["spec"]);
    }
}

fn check_workload(object: &Value, causes: &mut Causes) {
    let spec = &object["spec"];
    match &spec["selector"] {
        Value::Null => {
            causes.required("spec.selector", "");
            let why = "`selector` does not match template `labels`";
            causes.invalid("spec.template.metadata.labels", &Value::Null, why);
        }
        selector if selector::is_empty(selector) => {
            causes.invalid("spec.selector", selector, "empty selector is invalid for deployment");
        }
        selector => {
            selector::check_selector(selector, "spec.selector", causes);
            let labels = at(spec, &["template", "metadata", "labels"]);
            if !selector::selects(selector, labels) {
                let why = "`selector` does not match template `labels`";
                causes.invalid("spec.template.metadata.labels", labels, why);
            }
        }
    }
    check_template(&spec["template"], "spec.template", causes);
    let policy = at(spec, &["template", "spec", "restartPolicy"]);
    if ["OnFailure", "Never"].iter().any(|known| policy == known) {
        causes.not_supported("spec.template.spec.restartPolicy", policy, &["Always"]);
    }
}

/// Checks the template of a Pod.
pub(super) fn check_template(template: &Value, path: &str, causes: &mut Causes) {
    selector::check_labels(at(template, &["metadata", "labels"]), &format!("{path}.labels"), causes);
    pod_spec::check_spec(&template["spec"], &format!("{path}.spec"), causes);
}

/// Checks that some numbers of a spec are not negative.
pub(super) fn check_not_negative(spec: &Value, names: &[&str], causes: &mut Causes) {
    for name in names {
        if spec[name].as_i64().is_some_and(|number| number < 0) {
            causes.invalid(format!("spec.{name}"), &spec[name], "must be greater than or equal to 0");
        }
    }
}

/// Checks the counts in a status: none is negative, and none but the first is greater than it.
fn check_counts(new: &Value, _: &Value, causes: &mut Causes) {
    let status = &new["status"];
    let total = status["replicas"].as_i64().unwrap_or_default();
    for name in
        ["replicas", "updatedReplicas", "readyReplicas", "availableReplicas", "currentReplicas", "observedGeneration"]
    {
        let count = status[name].as_i64().unwrap_or_default();
        if count < 0 {
            causes.invalid(format!("status.{name}"), &status[name], "must be greater than or equal to 0");
        }
        if name != "observedGeneration" && count > total {
            causes.invalid(format!("status.{name}"), &status[name], "cannot be greater than status.replicas");
        }
    }
    let (ready, available) = (status["readyReplicas"].as_i64(), status["availableReplicas"].as_i64());
    if available.unwrap_or_default() > ready.unwrap_or_default() {
        causes.invalid(
            "status.availableReplicas",
            &status["availableReplicas"],
            "cannot be greater than readyReplicas",
        );
    }
}

/// Checks that some fields of the spec have not changed.
pub(super) fn check_same(new: &Value, old: &Value, names: &[&str], causes: &mut Causes) {
    for name in names {
        if new["spec"][name] != old["spec"][name] {
            causes.invalid(format!("spec.{name}"), &new["spec"][name], "field is immutable");
        }
    }
}
