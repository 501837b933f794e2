//! What happens next to an active job: a pure function of its replicas, its last status and the time.

use crate::api::{HangAction, RestartScope, TrainingJobStatus};
use crate::backoff::end_of_pause;
use crate::failure::Treatment;
use crate::finish::Finish;
use crate::incident::{Charge, Incident, is_evaluator};
use crate::job::Job;
use crate::limits::Situation;
use crate::outcome::{list_with_exit_codes, success};
use crate::progress;
use crate::replicas::{Replica, ReplicaState, Replicas};
use pilothouse_pods::time::Time;

/// What happens next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The job has ended.
    Finish(Finish),
    /// Pods are removed, so that new ones can take their places.
    Restart(Restart),
    /// The Pods stay, and missing ones are created: at once, or later if there is a reason to wait.
    SyncPods {
        /// Why missing Pods are not created yet.
        delay: Option<CreationDelay>,
        /// Restarts that the kubelet has made.
        charge: Charge,
    },
}

/// Why missing Pods are not created yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreationDelay {
    /// Old Pods are still being deleted.
    UntilOldPodsAreGone,
    /// The backoff after the last restart is not over yet: so many seconds are left.
    Backoff(u32),
}

/// Which Pods are removed for a restart, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restart {
    /// UIDs of the Pods.
    pub pods: Vec<String>,
    /// What it counts as against the backoff limit.
    pub charge: Charge,
    /// Whether the cluster has a part in it, which counts against the disruption limit.
    pub has_disruption: bool,
    /// Why.
    pub reason: RestartReason,
    /// A sentence.
    pub message: String,
}

/// Why Pods are restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestartReason {
    /// Workers have failed.
    Failure,
    /// The cluster has ended workers.
    Disruption,
    /// The Pod of a worker is gone, and the others cannot go on without it.
    WorkerLost,
    /// The training makes no progress.
    Hang,
    /// The user has changed the spec.
    SpecChanged,
    /// The job has to give its quota back.
    QuotaLost,
}

impl RestartReason {
    /// As the reason of conditions and Events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failure => "TrainingJobRestarting",
            Self::Disruption => "WorkerDisrupted",
            Self::WorkerLost => "WorkerLost",
            Self::Hang => "ProgressDeadlineExceeded",
            Self::SpecChanged => "SpecChanged",
            Self::QuotaLost => "QuotaLost",
        }
    }
}

/// Decides.
pub fn decide(job: &Job<'_>, replicas: &Replicas<'_>, old_status: &TrainingJobStatus, now: Time) -> Decision {
    let incident = Incident::of(job, replicas, old_status, now);
    let hang = progress::hang(job, old_status, progress::progress(job, replicas, old_status, now).as_ref(), now);
    let hang = hang.filter(|_| job.on_hang() == HangAction::Restart);
    let situation = Situation { job, replicas, incident: &incident, hang: hang.as_deref(), old_status, now };
    // What the training itself ended comes before the limits: a job that succeeds at its deadline has succeeded.
    let finish = success(job, replicas)
        .map(Finish::succeeded)
        .or_else(|| failed_for_good(job, &incident))
        .or_else(|| situation.exceeded_limit());
    if let Some(finish) = finish {
        return Decision::Finish(finish);
    }
    let restart = restart_after_failure(job, replicas, &incident)
        .or_else(|| restart_for_changed_spec(replicas))
        .or_else(|| restart_for_lost_worker(job, replicas, &incident))
        .or_else(|| restart_after_hang(replicas, hang, now));
    match restart {
        Some(restart) => Decision::Restart(restart),
        None => Decision::SyncPods { delay: creation_delay(job, replicas, old_status, now), charge: incident.charge },
    }
}

fn failed_for_good(job: &Job<'_>, incident: &Incident<'_, '_>) -> Option<Finish> {
    let is_final = incident.treatment == Treatment::FailJob;
    let message = || format!("failed for good: {}", list_with_exit_codes(job, &incident.failed));
    is_final.then(|| Finish::failed("TrainingJobFailed", message()))
}

fn restart_after_failure(job: &Job<'_>, replicas: &Replicas<'_>, incident: &Incident<'_, '_>) -> Option<Restart> {
    if incident.failed.is_empty() {
        return None;
    }
    let uid = |replica: &&Replica<'_>| replica.pod.map(|pod| pod.uid().to_owned());
    let is_alone = incident.failed.iter().all(|replica| is_evaluator(replica));
    let (pods, consequence) = match job.restart_scope() {
        RestartScope::Job if !is_alone => (replicas.all_uids(), "all workers are restarted"),
        _ => (incident.failed.iter().filter_map(uid).chain(lost_alone(incident)).collect(), "they are replaced"),
    };
    let list = list_with_exit_codes(job, &incident.failed);
    let (reason, message) = match (incident.treatment, incident.lost) {
        (Treatment::Ignore, Some(lost)) => {
            (RestartReason::WorkerLost, format!("{} is gone; then failed: {list}; {consequence}", lost.pod_name))
        }
        (Treatment::Ignore, None) => (RestartReason::Disruption, format!("disrupted: {list}; {consequence}")),
        _ => (RestartReason::Failure, format!("failed: {list}; {consequence}")),
    };
    Some(Restart { pods, charge: incident.charge, has_disruption: incident.has_disruption(), reason, message })
}

fn restart_for_changed_spec(replicas: &Replicas<'_>) -> Option<Restart> {
    replicas.has_pods_of_other_spec.then(|| Restart {
        pods: replicas.all_uids(),
        charge: Charge::default(),
        has_disruption: false,
        reason: RestartReason::SpecChanged,
        message: "the spec has changed; all Pods are made anew".to_owned(),
    })
}

/// A hang is charged as a failure is.
fn restart_after_hang(replicas: &Replicas<'_>, hang: Option<String>, now: Time) -> Option<Restart> {
    let charge = Charge { restarts: 1, at: Some(now) };
    Some(Restart {
        pods: replicas.all_uids(),
        charge,
        has_disruption: false,
        reason: RestartReason::Hang,
        message: hang?,
    })
}

/// Workers that cannot go on without each other are all restarted when the Pod of one of them is gone. Others are replaced.
fn restart_for_lost_worker(job: &Job<'_>, replicas: &Replicas<'_>, incident: &Incident<'_, '_>) -> Option<Restart> {
    let (pods, message) = match (incident.lost, incident.lost_alone.as_slice()) {
        (Some(lost), _) => (replicas.all_uids(), format!("{} is gone; all workers are restarted", lost.pod_name)),
        (None, []) => return None,
        (None, alone) => {
            (lost_alone(incident).collect(), format!("gone: {}; they are replaced", list_with_exit_codes(job, alone)))
        }
    };
    let (charge, reason) = (incident.charge, RestartReason::WorkerLost);
    Some(Restart { pods, charge, has_disruption: true, reason, message })
}

/// UIDs of the Pods of replicas that are gone and whose peers go on, as far as they still exist or are known.
fn lost_alone(incident: &Incident<'_, '_>) -> impl Iterator<Item = String> {
    incident.lost_alone.iter().filter_map(|replica| replica.last_status?.pod_uid.clone())
}

fn creation_delay(
    job: &Job<'_>,
    replicas: &Replicas<'_>,
    old_status: &TrainingJobStatus,
    now: Time,
) -> Option<CreationDelay> {
    // New workers would connect to old ones that are shut down a moment later.
    let old_pods_exist = replicas.any(ReplicaState::Terminating) || !replicas.others.is_empty();
    if job.restart_scope() == RestartScope::Job && old_pods_exist {
        return Some(CreationDelay::UntilOldPodsAreGone);
    }
    let seconds_left = end_of_pause(old_status, now)?.since(now);
    (seconds_left > 0).then_some(CreationDelay::Backoff(seconds_left))
}
