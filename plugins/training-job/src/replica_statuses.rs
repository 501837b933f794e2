//! The part of the status that is about single replicas, and a sentence about all of them. It says nothing of the job's phase
//! and conditions.

use crate::api::{TrainingJobStatus, WorkerStatus};
use crate::job::{Job, ReplicaType};
use crate::replicas::{Replica, ReplicaState, Replicas};
use pilothouse_pods::observed_pod::ObservedPod;

/// The most bytes of a Pod's own message that the status repeats.
const MAX_MESSAGE_BYTES: usize = 256;

/// Updates the status of every replica, and the counts of workers.
pub fn update_replica_statuses(status: &mut TrainingJobStatus, job: &Job<'_>, replicas: &Replicas<'_>) {
    let statuses_of = |replica_type| {
        let of_type = replicas.all.iter().filter(move |replica| replica.id.replica_type == replica_type);
        of_type.map(|replica| replica_status(job, replica)).collect()
    };
    status.worker_statuses = statuses_of(ReplicaType::Worker);
    status.parameter_server_statuses = statuses_of(ReplicaType::ParameterServer);
    status.replicas = count(replicas.workers().filter(|worker| has_staying_pod(worker)).count());
    status.active = count(replicas.count_workers(ReplicaState::Running));
    status.succeeded = count(replicas.count_workers(ReplicaState::Succeeded));
    status.failed = count(replicas.count_workers(ReplicaState::Failed));
}

/// How many workers run, and what is wrong with the first replica in trouble.
pub fn summary(status: &TrainingJobStatus) -> String {
    let workers = status.worker_statuses.len();
    let mut text = format!("{} of {workers} workers run", status.active);
    for (count, what) in [(status.succeeded, "succeeded"), (status.failed, "failed")] {
        if count > 0 {
            text.push_str(&format!(", {count} {what}"));
        }
    }
    if let Some(replica) = status.replica_statuses().find(|replica| replica.reason.is_some()) {
        text.push_str(&format!("; {}: {}", replica.pod_name, replica.reason.as_deref().unwrap_or_default()));
        text.push_str(&replica.message.as_ref().map(|message| format!(": {message}")).unwrap_or_default());
    }
    text
}

fn count(replicas: usize) -> u32 {
    u32::try_from(replicas).unwrap_or(u32::MAX)
}

fn has_staying_pod(replica: &Replica<'_>) -> bool {
    replica.pod.is_some() && replica.state != ReplicaState::Terminating
}

fn replica_status(job: &Job<'_>, replica: &Replica<'_>) -> WorkerStatus {
    let with_status = |status: &str| WorkerStatus {
        worker_id: replica.id.index,
        pod_name: replica.pod_name.clone(),
        status: status.to_owned(),
        ..WorkerStatus::default()
    };
    match (replica.pod, replica.state) {
        (Some(_), ReplicaState::Terminating) => with_status("Terminating"),
        (Some(pod), _) => with_pod_details(with_status(pod.display_status()), job, pod),
        // Its Pod is garbage-collected; the last status keeps what was known of it.
        (None, ReplicaState::Succeeded) => replica.last_status.cloned().unwrap_or_else(|| with_status("Succeeded")),
        (None, _) => with_status("Missing"),
    }
}

fn with_pod_details(status: WorkerStatus, job: &Job<'_>, pod: &ObservedPod) -> WorkerStatus {
    let container = job.spec.framework.as_str();
    let cause = pod.cause();
    let cut = |text: &str| text[..text.floor_char_boundary(MAX_MESSAGE_BYTES)].to_owned();
    let unless_empty = |text: &str| (!text.is_empty()).then(|| cut(text));
    WorkerStatus {
        reason: unless_empty(cause.reason),
        message: unless_empty(cause.message),
        exit_code: pod.exit_code(container),
        restarts: Some(pod.restart_count(container)).filter(|restarts| *restarts > 0),
        pod_uid: Some(pod.uid().to_owned()),
        ..status
    }
}
