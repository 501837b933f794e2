//! Autoscalers and workloads that are not of the object: they are told, and left alone.

use crate::case::{case, run, with_live};
use llm_serving::testing::condition;
use pilothouse_sdk::testing::Case;
use pilothouse_sdk::{Error, Kind};
use serde_json::{Value, json};

const FIXED: &str = "replicas: 2";
const SLA: &str = "replicas: 2, sla: {maxLatency: 100ms}";

struct ScaledObject;

impl Kind for ScaledObject {
    const API_VERSION: &'static str = "keda.sh/v1alpha1";
    const KIND: &'static str = "ScaledObject";
}

struct LeaderWorkerSet;

impl Kind for LeaderWorkerSet {
    const API_VERSION: &'static str = "leaderworkerset.x-k8s.io/v1";
    const KIND: &'static str = "LeaderWorkerSet";
}

/// An autoscaler of this kind and name that scales a workload, with these owners.
fn scaler(kind: &str, name: &str, target: (&str, &str), owners: Value) -> Value {
    let api_version = if kind == ScaledObject::KIND { ScaledObject::API_VERSION } else { "autoscaling/v2" };
    json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": { "name": name, "namespace": "ml", "uid": name, "ownerReferences": owners },
        "spec": { "scaleTargetRef": { "apiVersion": "apps/v1", "kind": target.0, "name": target.1 } },
    })
}

fn owner(kind: &str, uid: &str) -> Value {
    json!([{ "kind": kind, "name": "x", "uid": uid, "controller": true }])
}

const OURS: (&str, &str) = ("StatefulSet", "llama-3-70b");

#[test]
fn an_autoscaler_that_is_not_of_the_object_is_told() -> Result<(), Error> {
    let hpa = |name: &str, target, owners| scaler("HorizontalPodAutoscaler", name, target, owners);
    let told = "False OtherAutoscaler";
    let cases = [
        (FIXED, hpa("mine", OURS, json!([])), told),
        // What an earlier object has left, as `kubectl delete --cascade=orphan` does.
        (FIXED, hpa("llama-3-70b", OURS, json!([])), told),
        (FIXED, hpa("llama-3-70b", OURS, owner("ModelDeployment", "earlier")), told),
        (FIXED, scaler("ScaledObject", "mine", OURS, json!([])), told),
        (SLA, hpa("llama-3-70b", OURS, json!([])), told),
        (SLA, scaler("ScaledObject", "llama-3-70b", OURS, json!([])), told),
        ("replicas: 2, suspend: true", hpa("mine", OURS, json!([])), told),
        (FIXED, hpa("llama-3-70b", OURS, owner("ModelDeployment", "model")), ""),
        (FIXED, hpa("llama-3-70b.keda", OURS, owner("ScaledObject", "llama-3-70b")), ""),
        (FIXED, hpa("mine", ("Deployment", "llama-3-70b"), json!([])), ""),
        (FIXED, hpa("mine", ("StatefulSet", "other"), json!([])), ""),
        (FIXED, hpa("mine", ("ModelDeployment", "llama-3-70b"), json!([])), ""),
        ("replicas: 2, autoscaling: {autoscaler: external}", hpa("mine", OURS, json!([])), ""),
    ];
    for (spec, other, expected) in cases {
        let answer = run(with_live(case(spec)?, 2).found(&other))?;
        assert_eq!(condition(&answer, "OnlyOneAutoscaler"), expected, "{spec} {other}");
    }
    let answer = run(with_live(case(FIXED)?, 2).found(hpa("mine", OURS, json!([]))))?;
    let message = answer.condition("OnlyOneAutoscaler").map(|condition| condition.message.as_str());
    let expected = "the HorizontalPodAutoscaler 'mine', which is not of this object, scales the StatefulSet 'llama-3-70b' as well; remove it, \
                    or set spec.autoscaling.autoscaler to external";
    assert_eq!(message, Some(expected));
    Ok(())
}

#[test]
fn a_workload_that_an_earlier_object_has_left_is_told() -> Result<(), Error> {
    let left = |kind: &str, name: &str, owners: Value| {
        let api_version = if kind == LeaderWorkerSet::KIND { LeaderWorkerSet::API_VERSION } else { "apps/v1" };
        json!({
            "apiVersion": api_version, "kind": kind,
            "metadata": { "name": name, "namespace": "ml", "uid": "left", "ownerReferences": owners },
        })
    };
    let groups = "replicas: 2, tensorParallelSize: 16";
    let told = "False OtherWorkload";
    let cases = [
        (groups, left("StatefulSet", "llama-3-70b", json!([])), told),
        (groups, left("StatefulSet", "llama-3-70b", owner("ModelDeployment", "earlier")), told),
        (FIXED, left("LeaderWorkerSet", "llama-3-70b-mn", json!([])), told),
        (groups, left("StatefulSet", "llama-3-70b", owner("ModelDeployment", "model")), ""),
        (FIXED, left("LeaderWorkerSet", "llama-3-70b-mn", owner("ModelDeployment", "model")), ""),
        (FIXED, left("StatefulSet", "llama-3-70b", owner("ModelDeployment", "model")), ""),
    ];
    for (spec, other, expected) in cases {
        let answer = run(case(spec)?.found(&other))?;
        assert_eq!(condition(&answer, "OnlyOneWorkload"), expected, "{spec} {other}");
    }
    Ok(())
}

#[test]
fn kinds_that_are_not_installed_have_left_nothing() -> Result<(), Error> {
    let bare = |case: Case| case.not_installed::<ScaledObject>().not_installed::<LeaderWorkerSet>();
    let answer = run(bare(with_live(case(FIXED)?, 2)))?;
    assert_eq!(["OnlyOneAutoscaler", "OnlyOneWorkload"].map(|name| condition(&answer, name)), ["", ""]);
    assert_eq!(condition(&answer, "Ready"), "True Available");
    Ok(())
}
