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

/// The name under which the training operator makes children of `PyTorchJob`s: programs and policies select by it.
const OPERATOR: &str = "pytorchjob-controller";

/// The labels of every child of a job.
pub fn of_job(job: &Job<'_>) -> Value {
    json!({ OPERATOR_NAME: OPERATOR, JOB_NAME: job.name })
}

/// The labels by which a replica is found.
pub fn of_replica(job: &Job<'_>, replica: ReplicaId) -> Value {
    let mut labels = of_job(job);
    labels[REPLICA_TYPE] = json!(job.kind.role_name(replica.replica_type));
    labels["training.kubeflow.org/replica-index"] = json!(replica.index.to_string());
    labels
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
