//! The status of a job in Kubeflow's shape: how many replicas of each type are in which state, and when it began and ended.

use crate::api::{MASTER, PyTorchJobSpec, WORKER};
use crate::children::labels;
use serde_json::{Map, Value, json};
use training_job::Job;
use training_job::api::{ReplicaType, TrainingJobStatus, WorkerStatus};

/// The status. `told` is the time of the last news. The host adds conditions.
pub fn status(job: &Job<'_>, spec: &PyTorchJobSpec, known: &TrainingJobStatus, told: Option<&str>) -> Value {
    let mut status = json!({ "replicaStatuses": replica_statuses(job, spec, known) });
    let times = [
        ("startTime", known.start_time.as_deref()),
        ("completionTime", known.completion_time.as_deref()),
        ("lastReconcileTime", told),
    ];
    for (field, time) in times {
        if let Some(time) = time {
            status[field] = json!(time);
        }
    }
    status
}

fn replica_statuses(job: &Job<'_>, spec: &PyTorchJobSpec, known: &TrainingJobStatus) -> Map<String, Value> {
    let types =
        [(MASTER, ReplicaType::Chief, &known.chief_statuses), (WORKER, ReplicaType::Worker, &known.worker_statuses)];
    let exist = types.into_iter().filter(|(_, replica_type, _)| spec.replica_spec(*replica_type).is_some());
    exist.map(|(name, replica_type, statuses)| (name.to_owned(), of_type(job, replica_type, statuses))).collect()
}

fn of_type(job: &Job<'_>, replica_type: ReplicaType, statuses: &[WorkerStatus]) -> Value {
    let count = |wanted: &str| statuses.iter().filter(|status| status.status == wanted).count();
    let mut found = json!({ "selector": labels::selector(job, replica_type) });
    for (field, wanted) in [("active", "Running"), ("succeeded", "Succeeded"), ("failed", "Failed")] {
        // As the training operator writes it: what is zero is left out.
        if count(wanted) > 0 {
            found[field] = json!(count(wanted));
        }
    }
    found
}
