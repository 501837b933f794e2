//! What the API server and the controllers of Kubernetes add to a child when all is well: a Deployment rolls out, a Pod runs, a claim is
//! bound. A guess, for what is not carried out. A kind without rules gets what the API server adds to every object.

use jiff::Timestamp;
use pilothouse_controller::clock::api_time;
use pilothouse_engine::contract::KindRef;
use serde_json::{Map, Value, json};

/// Adds to a new object what the API server adds to every one.
pub fn created(object: &mut Value, number: usize, now: Timestamp) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    metadata.insert("uid".to_owned(), json!(format!("00000000-0000-4000-8000-{number:012}")));
    metadata.insert("creationTimestamp".to_owned(), json!(api_time(now)));
    metadata.insert("generation".to_owned(), json!(1));
}

/// The status that the controller of a kind would write; none for a kind without one.
pub fn status(kind: &KindRef, object: &Value, now: Timestamp) -> Option<Value> {
    let generation = object.pointer("/metadata/generation").cloned().unwrap_or_else(|| json!(1));
    let number = |pointer: &str| object.pointer(pointer).and_then(Value::as_i64);
    let replicas = || number("/spec/replicas").unwrap_or(1);
    let true_condition = |condition: &str, reason: &str| json!({"type": condition, "status": "True", "reason": reason, "message": "", "lastTransitionTime": api_time(now)});
    let status = match (kind.group(), kind.kind.as_str()) {
        ("apps", "Deployment") => counted(
            replicas(),
            &["replicas", "updatedReplicas", "readyReplicas", "availableReplicas"],
            json!({
                "observedGeneration": generation,
                "conditions": [
                    true_condition("Available", "MinimumReplicasAvailable"),
                    true_condition("Progressing", "NewReplicaSetAvailable"),
                ],
            }),
        ),
        ("apps", "StatefulSet") => counted(
            replicas(),
            &["replicas", "currentReplicas", "updatedReplicas", "readyReplicas", "availableReplicas"],
            json!({"observedGeneration": generation, "currentRevision": "1", "updateRevision": "1"}),
        ),
        ("apps", "ReplicaSet") => counted(
            replicas(),
            &["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
            json!({"observedGeneration": generation}),
        ),
        ("apps", "DaemonSet") => json!({
            "observedGeneration": generation, "desiredNumberScheduled": 1, "currentNumberScheduled": 1,
            "updatedNumberScheduled": 1, "numberReady": 1, "numberAvailable": 1, "numberMisscheduled": 0,
        }),
        ("batch", "Job") => json!({
            "succeeded": number("/spec/completions").unwrap_or(1), "startTime": api_time(now),
            "completionTime": api_time(now), "conditions": [true_condition("Complete", "CompletionsReached")],
        }),
        ("", "Pod") => json!({
            "phase": "Running", "startTime": api_time(now),
            "conditions": [
                true_condition("PodScheduled", ""), true_condition("Initialized", ""),
                true_condition("ContainersReady", ""), true_condition("Ready", ""),
            ],
        }),
        ("", "PersistentVolumeClaim") => json!({
            "phase": "Bound", "capacity": object.pointer("/spec/resources/requests").cloned().unwrap_or_default(),
        }),
        ("", "Namespace") => json!({"phase": "Active"}),
        ("", "Service") if object.pointer("/spec/type").is_some_and(|found| found == "LoadBalancer") => {
            json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}})
        }
        ("networking.k8s.io", "Ingress") => json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}),
        ("autoscaling", "HorizontalPodAutoscaler") => {
            let replicas = number("/spec/minReplicas").unwrap_or(1);
            json!({"observedGeneration": generation, "currentReplicas": replicas, "desiredReplicas": replicas})
        }
        _ => return None,
    };
    Some(status)
}

/// Adds what the API server changes with a new spec.
pub fn raise_generation(object: &mut Value) {
    let generation = object.pointer("/metadata/generation").and_then(Value::as_i64).unwrap_or(1);
    object["metadata"]["generation"] = json!(generation + 1);
}

/// A status without the times that its controller writes once.
pub fn without_times(status: &Value) -> Value {
    match status {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(key, _)| !key.ends_with("Time"));
            Value::Object(kept.map(|(key, value)| (key.clone(), without_times(value))).collect())
        }
        Value::Array(elements) => elements.iter().map(without_times).collect(),
        other => other.clone(),
    }
}

/// A status in which all these fields have one number, if that is not zero: controllers leave zeros out.
fn counted(number: i64, fields: &[&str], rest: Value) -> Value {
    let mut status = rest.as_object().cloned().unwrap_or_else(Map::new);
    if number != 0 {
        status.extend(fields.iter().map(|field| ((*field).to_owned(), json!(number))));
    }
    Value::Object(status)
}
