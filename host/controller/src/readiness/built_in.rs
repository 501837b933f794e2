//! The rules of readiness for the built-in kinds whose conditions do not say it all. Reads a spec and a status, and nothing else.

use pilothouse_engine::contract::{KindRef, Readiness};
use serde_json::Value;

use super::{
    fields::{condition, count, integer, text},
    not_current::{failed, in_progress},
    parts::Parts,
};

/// A rule: none if the kind's general rules decide.
type Rule = fn(&Parts) -> Option<Readiness>;

/// The rules by group and kind.
const RULES: [(&str, &str, Rule); 10] = [
    ("apps", "Deployment", deployment),
    ("apps", "StatefulSet", stateful_set),
    ("apps", "ReplicaSet", replica_set),
    ("apps", "DaemonSet", daemon_set),
    ("batch", "Job", job),
    ("policy", "PodDisruptionBudget", disruption_budget),
    ("apiextensions.k8s.io", "CustomResourceDefinition", definition),
    ("", "PersistentVolumeClaim", claim),
    ("", "Pod", pod),
    ("", "Service", service),
];

/// Whether a kind has rules of its own.
pub(super) fn has_rules(kind: &KindRef) -> bool {
    rule(kind).is_some()
}

/// How far an object of this kind is by the rules of its kind; none if it has none.
pub(super) fn readiness(kind: &KindRef, parts: &Parts) -> Option<Readiness> {
    let rule = rule(kind)?;
    Some(rule(parts).unwrap_or_else(Readiness::current))
}

fn rule(kind: &KindRef) -> Option<Rule> {
    RULES.into_iter().find(|(group, name, _)| kind.group() == *group && kind.kind == *name).map(|(_, _, rule)| rule)
}

/// The first of these counts that is less than wanted.
fn fewer(wanted: i64, counts: &[(i64, &str, &str)]) -> Option<Readiness> {
    let (found, reason, what) = counts.iter().find(|(found, _, _)| *found < wanted)?;
    Some(in_progress(reason, &format!("{found} of {wanted} replicas are {what}")))
}

fn wanted_replicas(spec: &Value) -> i64 {
    // The API server's default.
    integer(spec, "replicas").unwrap_or(1)
}

fn deployment(Parts { spec, status }: &Parts) -> Option<Readiness> {
    let (wanted, replicas) = (wanted_replicas(spec), count(status, "replicas"));
    let progressing = condition(status, "Progressing");
    if let Some(late) = progressing.filter(|progressing| progressing.reason == "ProgressDeadlineExceeded") {
        return Some(failed(late.reason, late.message));
    }
    let (updated, available) = (count(status, "updatedReplicas"), count(status, "availableReplicas"));
    let missing = fewer(wanted, &[(replicas, "LessReplicas", "there"), (updated, "LessUpdated", "updated")]);
    missing
        .or_else(|| (replicas > wanted).then(|| extra(replicas - wanted)))
        .or_else(|| fewer(updated, &[(available, "LessAvailable", "available")]))
        .or_else(|| fewer(wanted, &[(count(status, "readyReplicas"), "LessReady", "ready")]))
        .or_else(|| {
            let unavailable = condition(status, "Available").filter(|available| available.status != "True")?;
            Some(in_progress(unavailable.reason_or("NotAvailable"), unavailable.message))
        })
        // A status without any of it was written by nobody yet.
        .or_else(|| integer(status, "observedGeneration").is_none().then(|| in_progress("NotObserved", NOT_OBSERVED)))
}

/// Nobody has looked at the object yet.
const NOT_OBSERVED: &str = "its controller has not observed it yet";

fn extra(replicas: i64) -> Readiness {
    in_progress("ExtraReplicas", &format!("{replicas} replicas have to end"))
}

fn stateful_set(Parts { spec, status }: &Parts) -> Option<Readiness> {
    let strategy = spec.get("updateStrategy").unwrap_or(&Value::Null);
    if text(strategy, "type") == "OnDelete" {
        return None;
    }
    let (wanted, replicas) = (wanted_replicas(spec), count(status, "replicas"));
    let ready = count(status, "readyReplicas");
    if let Some(fewer) = fewer(wanted, &[(replicas, "LessReplicas", "there"), (ready, "LessReady", "ready")]) {
        return Some(fewer);
    }
    if replicas > wanted {
        return Some(extra(replicas - wanted));
    }
    if integer(status, "observedGeneration").is_none() {
        return Some(in_progress("NotObserved", NOT_OBSERVED));
    }
    let partition = strategy.get("rollingUpdate").and_then(|rolling| integer(rolling, "partition")).unwrap_or(0);
    let updated = count(status, "updatedReplicas");
    if partition > 0 {
        return fewer(wanted - partition, &[(updated, "PartitionRollout", "updated")]);
    }
    let (current, update) = (text(status, "currentRevision"), text(status, "updateRevision"));
    let is_rolling = current != update;
    is_rolling.then(|| in_progress("LessUpdated", &format!("{updated} of {wanted} replicas are updated")))
}

fn replica_set(Parts { spec, status }: &Parts) -> Option<Readiness> {
    let failure = condition(status, "ReplicaFailure").filter(|failure| failure.status == "True");
    if let Some(failure) = failure {
        return Some(in_progress(failure.reason_or("ReplicaFailure"), failure.message));
    }
    let (wanted, replicas) = (wanted_replicas(spec), count(status, "replicas"));
    let counts = [
        (replicas, "LessReplicas", "there"),
        (count(status, "availableReplicas"), "LessAvailable", "available"),
        (count(status, "readyReplicas"), "LessReady", "ready"),
    ];
    fewer(wanted, &counts).or_else(|| (replicas > wanted).then(|| extra(replicas - wanted)))
}

fn daemon_set(Parts { status, .. }: &Parts) -> Option<Readiness> {
    if integer(status, "observedGeneration").is_none() {
        return Some(in_progress("NotObserved", NOT_OBSERVED));
    }
    let wanted = count(status, "desiredNumberScheduled");
    let counts = [
        (count(status, "currentNumberScheduled"), "LessCurrent", "there"),
        (count(status, "updatedNumberScheduled"), "LessUpdated", "updated"),
        (count(status, "numberAvailable"), "LessAvailable", "available"),
        (count(status, "numberReady"), "LessReady", "ready"),
    ];
    fewer(wanted, &counts)
}

fn job(Parts { spec, status }: &Parts) -> Option<Readiness> {
    let is_true = |name: &str| condition(status, name).filter(|condition| condition.status == "True");
    if let Some(end) = is_true("Failed") {
        return Some(failed(end.reason_or("JobFailed"), end.message));
    }
    if is_true("Complete").is_some() {
        return None;
    }
    if spec.get("suspend").and_then(Value::as_bool) == Some(true) {
        return Some(in_progress("JobSuspended", "it is suspended"));
    }
    let (done, wanted) = (count(status, "succeeded"), integer(spec, "completions").unwrap_or(1));
    Some(in_progress("JobInProgress", &format!("{done} of {wanted} Pods have completed")))
}

fn disruption_budget(Parts { status, .. }: &Parts) -> Option<Readiness> {
    let (healthy, wanted) = (count(status, "currentHealthy"), count(status, "desiredHealthy"));
    if integer(status, "observedGeneration").is_none() {
        return Some(in_progress("NotObserved", NOT_OBSERVED));
    }
    (healthy < wanted).then(|| in_progress("BudgetNotMet", &format!("{healthy} of {wanted} Pods are healthy")))
}

fn definition(Parts { status, .. }: &Parts) -> Option<Readiness> {
    let named = condition(status, "NamesAccepted").filter(|accepted| accepted.status == "False");
    if let Some(refused) = named {
        return Some(failed(refused.reason_or("NamesNotAccepted"), refused.message));
    }
    let is_established = condition(status, "Established").is_some_and(|established| established.status == "True");
    (!is_established).then(|| in_progress("NotEstablished", "it is not served yet"))
}

fn claim(Parts { status, .. }: &Parts) -> Option<Readiness> {
    (text(status, "phase") == "Lost").then(|| failed("VolumeLost", "the volume that it was bound to is gone"))
}

fn service(Parts { spec, .. }: &Parts) -> Option<Readiness> {
    let awaits_address = text(spec, "type") == "LoadBalancer" && text(spec, "clusterIP").is_empty();
    awaits_address.then(|| in_progress("NoAddress", "it has no address yet"))
}

fn pod(Parts { status, .. }: &Parts) -> Option<Readiness> {
    match text(status, "phase") {
        "Succeeded" => None,
        "Failed" => Some(failed(or(text(status, "reason"), "PodFailed"), text(status, "message"))),
        "Running" if condition(status, "Ready").is_some_and(|ready| ready.status == "True") => None,
        "Running" => Some(running_pod(status)),
        _ => {
            let unscheduled = condition(status, "PodScheduled").filter(|scheduled| scheduled.status == "False");
            let why = unscheduled.map(|unscheduled| in_progress(unscheduled.reason_or("Pending"), unscheduled.message));
            Some(why.unwrap_or_else(|| in_progress("Pending", "it has not started yet")))
        }
    }
}

/// A Pod that runs and is not ready.
fn running_pod(status: &Value) -> Readiness {
    let containers = status.get("containerStatuses").and_then(Value::as_array).into_iter().flatten();
    let looping = containers.into_iter().find(|container| {
        container.pointer("/state/waiting/reason").and_then(Value::as_str) == Some("CrashLoopBackOff")
    });
    match looping {
        Some(container) => {
            let message = format!("the container {} ends again and again", text(container, "name"));
            failed("CrashLoopBackOff", &message)
        }
        None => in_progress("PodNotReady", "it runs and is not ready"),
    }
}

fn or<'t>(text: &'t str, other: &'t str) -> &'t str {
    if text.is_empty() { other } else { text }
}

#[cfg(test)]
mod tests {
    use pilothouse_engine::contract::ReadinessStatus::{Current, Failed, InProgress};
    use serde_json::json;

    use super::*;

    #[test]
    fn each_kind_has_the_rules_of_kstatus() {
        let condition = |name: &str, status: &str, reason: &str| json!([{"type": name, "status": status, "reason": reason, "message": "m"}]);
        let rolled_out = json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2,
            "readyReplicas": 2, "conditions": condition("Available", "True", "")});
        let with = |base: &Value, field: &str, value: Value| {
            let mut changed = base.clone();
            changed[field] = value;
            changed
        };
        let two = json!({"replicas": 2});
        let sets = json!({"observedGeneration": 1, "replicas": 2, "readyReplicas": 2, "updatedReplicas": 2,
            "currentRevision": "b", "updateRevision": "b"});
        let everywhere = json!({"observedGeneration": 1, "desiredNumberScheduled": 3, "currentNumberScheduled": 3,
            "updatedNumberScheduled": 3, "numberAvailable": 3, "numberReady": 3});
        let waiting = json!([{"name": "main", "state": {"waiting": {"reason": "CrashLoopBackOff"}}}]);
        let partitioned = json!({"replicas": 2, "updateStrategy": {"rollingUpdate": {"partition": 1}}});
        for (kind, spec, status, expected, reason) in [
            ("apps Deployment", &two, json!({}), InProgress, "LessReplicas"),
            ("apps Deployment", &json!({"replicas": 0}), json!({}), InProgress, "NotObserved"),
            ("apps Deployment", &two, rolled_out.clone(), Current, ""),
            ("apps Deployment", &two, with(&rolled_out, "updatedReplicas", json!(1)), InProgress, "LessUpdated"),
            ("apps Deployment", &two, with(&rolled_out, "replicas", json!(3)), InProgress, "ExtraReplicas"),
            ("apps Deployment", &two, with(&rolled_out, "availableReplicas", json!(1)), InProgress, "LessAvailable"),
            ("apps Deployment", &two, with(&rolled_out, "readyReplicas", json!(1)), InProgress, "LessReady"),
            (
                "apps Deployment",
                &two,
                with(&rolled_out, "conditions", condition("Progressing", "False", "ProgressDeadlineExceeded")),
                Failed,
                "ProgressDeadlineExceeded",
            ),
            ("apps StatefulSet", &two, sets.clone(), Current, ""),
            ("apps StatefulSet", &two, with(&sets, "readyReplicas", json!(1)), InProgress, "LessReady"),
            ("apps StatefulSet", &two, with(&sets, "currentRevision", json!("a")), InProgress, "LessUpdated"),
            ("apps StatefulSet", &json!({"updateStrategy": {"type": "OnDelete"}}), json!({}), Current, ""),
            ("apps StatefulSet", &partitioned, with(&sets, "updatedReplicas", json!(1)), Current, ""),
            (
                "apps StatefulSet",
                &partitioned,
                with(&sets, "updatedReplicas", json!(0)),
                InProgress,
                "PartitionRollout",
            ),
            ("apps ReplicaSet", &two, rolled_out.clone(), Current, ""),
            ("apps ReplicaSet", &two, json!({"replicas": 2}), InProgress, "LessAvailable"),
            ("apps DaemonSet", &json!({}), everywhere.clone(), Current, ""),
            ("apps DaemonSet", &json!({}), with(&everywhere, "numberReady", json!(2)), InProgress, "LessReady"),
            ("apps DaemonSet", &json!({}), json!({}), InProgress, "NotObserved"),
            ("batch Job", &json!({}), json!({}), InProgress, "JobInProgress"),
            ("batch Job", &json!({"suspend": true}), json!({}), InProgress, "JobSuspended"),
            ("batch Job", &json!({}), json!({"conditions": condition("Complete", "True", "")}), Current, ""),
            (
                "batch Job",
                &json!({}),
                json!({"conditions": condition("Failed", "True", "BackoffLimitExceeded")}),
                Failed,
                "BackoffLimitExceeded",
            ),
            (
                "policy PodDisruptionBudget",
                &json!({}),
                json!({"observedGeneration": 1, "currentHealthy": 1, "desiredHealthy": 2}),
                InProgress,
                "BudgetNotMet",
            ),
            ("apiextensions.k8s.io CustomResourceDefinition", &json!({}), json!({}), InProgress, "NotEstablished"),
            (
                "apiextensions.k8s.io CustomResourceDefinition",
                &json!({}),
                json!({"conditions": condition("NamesAccepted", "False", "Taken")}),
                Failed,
                "Taken",
            ),
            (" PersistentVolumeClaim", &json!({}), json!({"phase": "Pending"}), Current, ""),
            (" PersistentVolumeClaim", &json!({}), json!({"phase": "Bound"}), Current, ""),
            (" PersistentVolumeClaim", &json!({}), json!({"phase": "Lost"}), Failed, "VolumeLost"),
            (" Service", &json!({"type": "LoadBalancer"}), json!({}), InProgress, "NoAddress"),
            (" Service", &json!({"type": "LoadBalancer", "clusterIP": "10.0.0.1"}), json!({}), Current, ""),
            (" Pod", &json!({}), json!({}), InProgress, "Pending"),
            (
                " Pod",
                &json!({}),
                json!({"phase": "Pending", "conditions": condition("PodScheduled", "False", "Unschedulable")}),
                InProgress,
                "Unschedulable",
            ),
            (" Pod", &json!({}), json!({"phase": "Running"}), InProgress, "PodNotReady"),
            (
                " Pod",
                &json!({}),
                json!({"phase": "Running", "conditions": condition("Ready", "True", "")}),
                Current,
                "",
            ),
            (" Pod", &json!({}), json!({"phase": "Running", "containerStatuses": waiting}), Failed, "CrashLoopBackOff"),
            (" Pod", &json!({}), json!({"phase": "Succeeded"}), Current, ""),
            (" Pod", &json!({}), json!({"phase": "Failed", "reason": "Evicted"}), Failed, "Evicted"),
        ] {
            let (group, name) = kind.split_once(' ').unwrap_or_default();
            let api_version = if group.is_empty() { "v1".to_owned() } else { format!("{group}/v1") };
            let parts = Parts { spec: spec.clone(), status: status.clone() };
            let found = readiness(&KindRef::new(api_version, name), &parts);
            let found = found.map(|found| (found.status, found.reason));
            assert_eq!(found, Some((expected, reason.to_owned())), "{kind} {spec} {status}");
        }
    }
}
