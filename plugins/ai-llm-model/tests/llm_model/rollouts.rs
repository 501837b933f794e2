//! How Pods are replaced, and how many may be missing: with GPUs no spare one is needed, and no rollout breaks the budget.

use crate::case::{children, template};
use pilothouse_sdk::Error;
use serde_json::{Value, json};

/// The rest of the spec; surge and missing Pods of the rollout; the budget.
#[rustfmt::skip]
const ROLLOUTS: &[(&str, &str, &str, &str)] = &[
    ("replicas: 4, gpuCount: 1", "0", "1", "{maxUnavailable: 1}"),
    ("replicas: 4", "25%", "25%", "{maxUnavailable: 1}"),
    ("replicas: 8", "25%", "25%", "{maxUnavailable: 2}"),
    ("replicas: 1", "25%", "25%", "null"),
    ("replicas: 1, disruptionBudget: {maxUnavailable: 1}", "25%", "25%", "{maxUnavailable: 1}"),
    ("replicas: 4, rollout: {maxUnavailable: 2}", "25%", "2", "{maxUnavailable: 2}"),
    ("replicas: 8, disruptionBudget: {maxUnavailable: 1}", "25%", "1", "{maxUnavailable: 1}"),
    ("replicas: 8, disruptionBudget: {minAvailable: 8}", "25%", "0", "{minAvailable: 8}"),
    ("replicas: 4, gpuCount: 1, rollout: {maxSurge: 1, maxUnavailable: 0}", "1", "0", "{maxUnavailable: 1}"),
];

#[test]
fn a_rollout_keeps_to_the_disruption_budget() -> Result<(), Error> {
    for (spec, surge, unavailable, budget) in ROLLOUTS {
        let children = children(spec)?;
        let rolling = &children.only("Deployment")?["spec"]["strategy"]["rollingUpdate"];
        let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        assert_eq!([text(&rolling["maxSurge"]), text(&rolling["maxUnavailable"])], [*surge, *unavailable], "{spec}");
        let expected: Option<Value> = crate::case::parse(budget)?.as_object().cloned().map(Value::Object);
        let given = children.only("PodDisruptionBudget").ok().map(|budget| {
            let mut spec = budget["spec"].clone();
            spec.as_object_mut().map(|spec| spec.remove("selector"));
            spec
        });
        assert_eq!(given, expected, "{spec}");
    }
    Ok(())
}

#[test]
fn a_suspended_model_keeps_everything_but_its_pods() -> Result<(), Error> {
    let children = children("replicas: 3, suspend: true")?;
    assert_eq!(children.only("Deployment")?["spec"]["replicas"], 0);
    assert!(children.only("Service").is_ok());
    assert!(children.only("PodDisruptionBudget").is_err());
    Ok(())
}

/// Where there shall be no Pod, none has to be replaced, and no claim is mounted.
#[test]
fn a_model_can_always_be_scaled_to_nothing() -> Result<(), Error> {
    for rest in ["gpuCount: 1, disruptionBudget: {minAvailable: 1}", "modelSource: {uri: 'pvc://gone/a'}"] {
        for spec in ["replicas: 0", "replicas: 1, suspend: true"] {
            let children = children(&format!("{spec}, {rest}"))?;
            assert_eq!(children.only("Deployment")?["spec"]["replicas"], 0, "{spec}, {rest}");
        }
    }
    Ok(())
}

/// Otherwise a model that takes long to be downloaded and loaded would count as stuck.
#[test]
fn a_rollout_has_the_time_that_a_model_takes() -> Result<(), Error> {
    let deadline = |spec: &str| -> Result<Value, Error> {
        Ok(children(spec)?.only("Deployment")?["spec"]["progressDeadlineSeconds"].clone())
    };
    assert_eq!(deadline("")?, 1200);
    assert_eq!(deadline("startupTimeoutSeconds: 3600")?, 4200);
    assert_eq!(deadline("modelSource: {uri: 'hf://a/b', deadlineSeconds: 1000}")?, 2200);
    Ok(())
}

/// What a user may change in a running server without a new Pod.
#[test]
fn scaling_changes_no_pod_template() -> Result<(), Error> {
    assert_eq!(template("replicas: 2")?, template("replicas: 5")?);
    assert_eq!(template("rollout: {maxUnavailable: 1}")?, template("suspend: true")?);
    assert_ne!(template("")?, json!(null));
    Ok(())
}
