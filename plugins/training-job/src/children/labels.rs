//! The labels of a job's children, and the selector that finds its workers. The host adds labels of its own.

use crate::api::ReplicaType;
use crate::job::{Job, ReplicaId};
use serde_json::{Value, json};

/// The label with the name of the job.
pub const JOB_NAME: &str = "ml.example.com/job-name";

/// The label of a Pod with its replica type.
pub const REPLICA_TYPE: &str = "ml.example.com/replica-type";

/// The label of a worker's Pod with its number, as other tools look for it.
pub const COMPLETION_INDEX: &str = "batch.kubernetes.io/job-completion-index";

/// The labels of every child of a job.
pub fn of_job(job: &Job<'_>) -> Value {
    json!({
        "app.kubernetes.io/name": job.name,
        "app.kubernetes.io/instance": job.name,
        "app.kubernetes.io/part-of": "trainingjob",
        JOB_NAME: job.name,
    })
}

/// The labels of a replica's Pod.
pub fn of_pod(job: &Job<'_>, replica: ReplicaId) -> Value {
    let (replica_type, index) = (replica.replica_type.as_str(), replica.index.to_string());
    let mut labels = of_job(job);
    labels["app.kubernetes.io/component"] = json!(replica_type);
    labels[REPLICA_TYPE] = json!(replica_type);
    labels["ml.example.com/replica-index"] = json!(index);
    if replica.replica_type == ReplicaType::Worker {
        labels[COMPLETION_INDEX] = json!(index);
    }
    labels
}

/// The labels by which the Service of the job and those who scale it find a replica's Pod.
pub fn found_by(job: &Job<'_>, replica_type: ReplicaType) -> Vec<(&'static str, String)> {
    vec![(JOB_NAME, job.name.to_owned()), (REPLICA_TYPE, replica_type.as_str().to_owned())]
}

/// The label selector of a job's workers, as text.
pub fn worker_selector(job: &Job<'_>) -> String {
    let labels = found_by(job, ReplicaType::Worker);
    labels.iter().map(|(label, value)| format!("{label}={value}")).collect::<Vec<_>>().join(",")
}
