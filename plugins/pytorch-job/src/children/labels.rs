//! The labels of a job's children, as the training operator gives them. The host adds labels of its own.

use serde_json::{Value, json};
use training_job::api::ReplicaType;
use training_job::{Job, ReplicaId};

/// The label with the name of the job.
pub const JOB_NAME: &str = "training.kubeflow.org/job-name";

/// The label with who made it.
const OPERATOR_NAME: &str = "training.kubeflow.org/operator-name";

/// The label with the replica type.
const REPLICA_TYPE: &str = "training.kubeflow.org/replica-type";

/// The label with the number of a replica among those of its type.
const REPLICA_INDEX: &str = "training.kubeflow.org/replica-index";

/// The name under which the training operator makes children of `PyTorchJob`s: programs and policies select by it.
const OPERATOR: &str = "pytorchjob-controller";

/// The labels of every child of a job.
pub fn of_job(job: &Job<'_>) -> Value {
    json!({ OPERATOR_NAME: OPERATOR, JOB_NAME: job.name })
}

/// The labels by which a replica is found: the Service of its name selects by them.
pub fn found_by(job: &Job<'_>, replica: ReplicaId) -> Vec<(&'static str, String)> {
    vec![
        (OPERATOR_NAME, OPERATOR.to_owned()),
        (JOB_NAME, job.name.to_owned()),
        (REPLICA_TYPE, job.kind.role_name(replica.replica_type).to_owned()),
        (REPLICA_INDEX, replica.index.to_string()),
    ]
}

/// The same as an object.
pub fn of_replica(job: &Job<'_>, replica: ReplicaId) -> Value {
    found_by(job, replica).into_iter().map(|(label, value)| (label.to_owned(), json!(value))).collect()
}

/// The labels of a replica's Pod: the one that leads says so.
pub fn of_pod(job: &Job<'_>, replica: ReplicaId) -> Value {
    let mut labels = of_replica(job, replica);
    if job.chief() == replica {
        labels["training.kubeflow.org/job-role"] = json!("master");
    }
    labels
}

/// The label selector of the replicas of a type, as text.
pub fn selector(job: &Job<'_>, replica_type: ReplicaType) -> String {
    let role = job.kind.role_name(replica_type);
    format!("{JOB_NAME}={},{OPERATOR_NAME}={OPERATOR},{REPLICA_TYPE}={role}", job.name)
}
