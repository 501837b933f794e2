//! The part of the status that is about single replicas, and a sentence about all of them. It says nothing of the job's phase
//! and conditions.

use crate::api::{ReplicaType, TrainingJobStatus, WorkerStatus};
use crate::job::Job;
use crate::replicas::{Replica, ReplicaState, Replicas};
use pilothouse_pods::observed_pod::{Cause, ObservedPod, PodPhase};
use pilothouse_pods::time::Time;
use pilothouse_sdk::RefusedChild;

/// The most bytes of a Pod's own message that the status repeats.
const MAX_MESSAGE_BYTES: usize = 256;

/// The reason of a replica whose Pod the API server refuses.
pub const FAILED_CREATE: &str = "FailedCreatePod";

/// What the statuses of replicas are made from.
pub struct Observation<'a> {
    /// The job.
    pub job: &'a Job<'a>,
    /// Its replicas.
    pub replicas: &'a Replicas<'a>,
    /// The children that could not be written.
    pub refused: &'a [RefusedChild],
    /// The time of this call.
    pub now: Time,
}

impl Observation<'_> {
    /// Updates the status of every replica, and the counts of workers.
    pub fn update(&self, status: &mut TrainingJobStatus) {
        status.worker_statuses = self.statuses_of(ReplicaType::Worker);
        status.parameter_server_statuses = self.statuses_of(ReplicaType::ParameterServer);
        status.chief_statuses = self.statuses_of(ReplicaType::Chief);
        status.evaluator_statuses = self.statuses_of(ReplicaType::Evaluator);
        status.launcher_statuses = self.statuses_of(ReplicaType::Launcher);
        status.stuck_pods = self.job.termination_policy().stuck(self.replicas.others.iter().copied(), self.now);
        status.replicas = count(self.replicas.workers().filter(|worker| worker.has_staying_pod()).count());
        status.active = count(self.replicas.count_workers(ReplicaState::Running));
        status.succeeded = count(self.replicas.count_workers(ReplicaState::Succeeded));
        status.failed = count(self.replicas.count_workers(ReplicaState::Failed));
    }

    fn statuses_of(&self, replica_type: ReplicaType) -> Vec<WorkerStatus> {
        let of_type = self.replicas.all.iter().filter(move |replica| replica.id.replica_type == replica_type);
        of_type.map(|replica| self.status_of(replica)).collect()
    }

    fn status_of(&self, replica: &Replica<'_>) -> WorkerStatus {
        let with_status = |status: &str| WorkerStatus {
            worker_id: replica.id.index,
            pod_name: replica.pod_name.clone(),
            status: status.to_owned(),
            ..WorkerStatus::default()
        };
        match (replica.pod, replica.state) {
            (Some(pod), ReplicaState::Terminating) => self.with_stuck_deletion(with_status("Terminating"), pod),
            (Some(pod), state) => with_pod_details(with_status(display_status(pod, state)), self.job, pod, state),
            // Its Pod is garbage-collected; the last status keeps what was known of it.
            (None, ReplicaState::Succeeded) => replica.last_status.cloned().unwrap_or_else(|| with_status("Succeeded")),
            (None, _) => self.with_refusal(with_status("Missing")),
        }
    }

    fn with_stuck_deletion(&self, status: WorkerStatus, pod: &ObservedPod) -> WorkerStatus {
        match self.job.termination_policy().notice(pod, self.now) {
            Some((reason, message)) => {
                WorkerStatus { reason: Some(reason.to_owned()), message: Some(message), ..status }
            }
            None => status,
        }
    }

    fn with_refusal(&self, status: WorkerStatus) -> WorkerStatus {
        let is_its = |refused: &&RefusedChild| refused.kind.kind == "Pod" && refused.name == status.pod_name;
        let Some(refused) = self.refused.iter().find(is_its) else { return status };
        let message = cut(&format!("{}: {}", refused.reason, refused.message)).to_owned();
        WorkerStatus { reason: Some(FAILED_CREATE.to_owned()), message: Some(message), ..status }
    }
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
    if let Some(obstacle) = status.obstacle() {
        text.push_str(&format!("; {obstacle}"));
    }
    text
}

fn count(replicas: usize) -> u32 {
    u32::try_from(replicas).unwrap_or(u32::MAX)
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_MESSAGE_BYTES)]
}

/// The last whole lines, or the end of the only one.
fn last_lines(text: &str) -> &str {
    let text = text.trim_end();
    let end = &text[text.ceil_char_boundary(text.len().saturating_sub(MAX_MESSAGE_BYTES))..];
    if end.len() == text.len() {
        return text;
    }
    end.split_once('\n').map_or(end, |(_, lines)| lines)
}

/// What is told of why a Pod does not run. A container that failed has the end of its log for a message, where the last lines say most; what
/// the Pod or the kubelet say begins with the cause.
fn message<'p>(pod: &ObservedPod, state: ReplicaState, cause: Cause<'p>) -> &'p str {
    let is_log = state == ReplicaState::Failed && pod.reason().is_empty();
    if is_log { last_lines(cause.message) } else { cut(cause.message) }
}

/// Whether another container of a Pod in which the one that trains has ended has not.
fn has_ended_beside_another(pod: &ObservedPod) -> bool {
    matches!(pod.phase(), PodPhase::Pending | PodPhase::Running)
}

/// The state of a Pod in one word.
fn display_status(pod: &ObservedPod, state: ReplicaState) -> &str {
    match state {
        ReplicaState::Succeeded => "Succeeded",
        ReplicaState::Failed => "Failed",
        _ => pod.display_status(),
    }
}

fn with_pod_details(status: WorkerStatus, job: &Job<'_>, pod: &ObservedPod, state: ReplicaState) -> WorkerStatus {
    let cause = match state {
        ReplicaState::Succeeded => Cause::default(),
        ReplicaState::Failed if has_ended_beside_another(pod) => pod.failure_of(job.container()),
        _ => pod.cause(),
    };
    let unless_empty = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let last_exit_code = || pod.last_end(job.container()).map(|end| end.exit_code).filter(|code| *code != 0);
    WorkerStatus {
        reason: unless_empty(cut(cause.reason)),
        message: unless_empty(message(pod, state, cause)),
        exit_code: pod.exit_code(job.container()).or_else(last_exit_code),
        restarts: Some(pod.restart_count(job.container())).filter(|restarts| *restarts > 0),
        pod_uid: Some(pod.uid().to_owned()),
        ..status
    }
}
