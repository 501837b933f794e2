//! What happens next to an active job: a pure function of its replicas, its last status and the time.

use crate::api::{HangAction, Phase, RestartScope, TrainingJobStatus};
use crate::failure::Treatment;
use crate::incident::{Charge, Incident, is_evaluator};
use crate::job::Job;
use crate::outcome::{list_with_exit_codes, runs_fully, success};
use crate::progress;
use crate::replicas::{Replica, ReplicaState, Replicas};
use crate::termination;
use crate::time::Time;

/// Seconds before the second of several restarts in a row. Each further restart waits twice as long.
const INITIAL_BACKOFF: u32 = 10;

/// The longest backoff, in seconds.
const MAX_BACKOFF: u32 = 300;

/// A job that has run so many seconds without a failure is well: the next restart is not one of a row.
const WELL_AFTER: u32 = 600;

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

/// How a job has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finish {
    /// `Succeeded` or `Failed`.
    pub phase: Phase,
    /// One CamelCase word.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

/// Which Pods are removed for a restart, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restart {
    /// UIDs of the Pods.
    pub pods: Vec<String>,
    /// What it counts as against the backoff limit.
    pub charge: Charge,
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
        }
    }
}

/// Decides.
pub fn decide(job: &Job<'_>, replicas: &Replicas<'_>, old_status: &TrainingJobStatus, now: Time) -> Decision {
    let incident = Incident::of(job, replicas, old_status);
    let hang = progress::hang(job, old_status, progress::progress(job, replicas, old_status, now).as_ref(), now);
    let hang = hang.filter(|_| job.on_hang() == HangAction::Restart);
    // What the training itself ended comes before the limits: a job that succeeds at its deadline has succeeded.
    let finish = succeeded(job, replicas)
        .or_else(|| failed_for_good(job, &incident))
        .or_else(|| deadline_exceeded(job, old_status, now))
        .or_else(|| backoff_limit_exceeded(job, &incident, old_status))
        .or_else(|| hangs_too_often(job, hang.as_deref(), old_status))
        .or_else(|| disruption_limit_exceeded(job, &incident, old_status, now))
        .or_else(|| start_deadline_exceeded(job, replicas, old_status, now))
        .or_else(|| termination_timeout_exceeded(job, replicas, now));
    if let Some(finish) = finish {
        return Decision::Finish(finish);
    }
    let restart = restart_after_failure(job, replicas, &incident)
        .or_else(|| restart_for_changed_spec(replicas))
        .or_else(|| restart_for_lost_worker(replicas, &incident))
        .or_else(|| restart_after_hang(replicas, hang, now));
    match restart {
        Some(restart) => Decision::Restart(restart),
        None => Decision::SyncPods { delay: creation_delay(job, replicas, old_status, now), charge: incident.charge },
    }
}

/// When the job fails for running too long, if it has a limit and has started.
pub fn deadline(job: &Job<'_>, status: &TrainingJobStatus) -> Option<Time> {
    after(status.start_time.as_ref(), job.active_deadline_seconds())
}

/// When the job fails for not getting started, if it has a limit and waits for its Pods.
pub fn start_deadline(job: &Job<'_>, status: &TrainingJobStatus) -> Option<Time> {
    after(status.starting_since.as_ref(), job.start_deadline_seconds())
}

/// When restarts no longer count, if the job runs and has had one.
pub fn backoff_reset(job: &Job<'_>, status: &TrainingJobStatus) -> Option<Time> {
    let has_restarted = status.restart_count > 0;
    after(status.running_since.as_ref(), job.backoff_reset_seconds()).filter(|_| has_restarted)
}

/// How many seconds after the begin of a restart its Pods are created: the first one at once, others of a row later and later.
pub fn restart_delay(old_status: &TrainingJobStatus, now: Time) -> u32 {
    if old_status.last_restart_time.is_none() || has_been_well(old_status, now) {
        return 0;
    }
    old_status.restart_delay_seconds.saturating_mul(2).clamp(INITIAL_BACKOFF, MAX_BACKOFF)
}

/// How many times in a row the job has been disrupted, with a disruption that happens now.
pub fn disruptions(old_status: &TrainingJobStatus, now: Time) -> u32 {
    if has_been_well(old_status, now) { 1 } else { old_status.disruption_count.saturating_add(1) }
}

fn has_been_well(old_status: &TrainingJobStatus, now: Time) -> bool {
    after(old_status.running_since.as_ref(), Some(WELL_AFTER)).is_some_and(|well| now >= well)
}

/// The time so many seconds after another, where both are known.
fn after(since: Option<&String>, seconds: Option<u32>) -> Option<Time> {
    Some(Time::parse(since?)?.plus(seconds?))
}

fn failed(reason: &'static str, message: String) -> Finish {
    Finish { phase: Phase::Failed, reason, message }
}

fn succeeded(job: &Job<'_>, replicas: &Replicas<'_>) -> Option<Finish> {
    let message = success(job, replicas)?;
    Some(Finish { phase: Phase::Succeeded, reason: "TrainingJobSucceeded", message })
}

fn failed_for_good(job: &Job<'_>, incident: &Incident<'_, '_>) -> Option<Finish> {
    let is_final = incident.treatment == Treatment::FailJob;
    let message = || format!("failed for good: {}", list_with_exit_codes(job, &incident.failed));
    is_final.then(|| failed("TrainingJobFailed", message()))
}

fn deadline_exceeded(job: &Job<'_>, old_status: &TrainingJobStatus, now: Time) -> Option<Finish> {
    let limit = job.active_deadline_seconds()?;
    let is_exceeded = deadline(job, old_status).is_some_and(|deadline| now >= deadline);
    let message = || format!("the job ran longer than its activeDeadlineSeconds of {limit}");
    is_exceeded.then(|| failed("DeadlineExceeded", message()))
}

/// One rule for all restarts: those so far, with those that the kubelet has just made or that the failures ask for, may be as many
/// as the limit.
fn backoff_limit_exceeded(
    job: &Job<'_>,
    incident: &Incident<'_, '_>,
    old_status: &TrainingJobStatus,
) -> Option<Finish> {
    let limit = job.backoff_limit();
    let restarts = incident.charge.restarts;
    if restarts == 0 || old_status.restart_count.saturating_add(restarts) <= limit {
        return None;
    }
    let last = match incident.failed.is_empty() {
        true => String::new(),
        false => format!("; last: {}", list_with_exit_codes(job, &incident.failed)),
    };
    Some(failed("BackoffLimitExceeded", format!("the backoffLimit of {limit} is used up{last}")))
}

fn disruption_limit_exceeded(
    job: &Job<'_>,
    incident: &Incident<'_, '_>,
    old_status: &TrainingJobStatus,
    now: Time,
) -> Option<Finish> {
    let limit = job.disruption_limit();
    if !incident.is_disruption() || disruptions(old_status, now) <= limit {
        return None;
    }
    let message = format!("workers were lost or disrupted more than {limit} times in a row, the disruptionLimit");
    Some(failed("DisruptionLimitExceeded", message))
}

fn start_deadline_exceeded(
    job: &Job<'_>,
    replicas: &Replicas<'_>,
    old_status: &TrainingJobStatus,
    now: Time,
) -> Option<Finish> {
    let limit = job.start_deadline_seconds()?;
    let is_exceeded = start_deadline(job, old_status).is_some_and(|deadline| now >= deadline);
    let message = || {
        let obstacle = old_status.obstacle().map(|obstacle| format!("; {obstacle}")).unwrap_or_default();
        format!("not all Pods ran within the startDeadlineSeconds of {limit}{obstacle}")
    };
    (is_exceeded && !runs_fully(job, replicas)).then(|| failed("StartDeadlineExceeded", message()))
}

fn termination_timeout_exceeded(job: &Job<'_>, replicas: &Replicas<'_>, now: Time) -> Option<Finish> {
    let limit = job.termination_timeout_seconds()?;
    let mut pods = replicas.all.iter().filter_map(|replica| replica.pod);
    let stuck = pods.find(|pod| termination::seconds_overdue(pod, now).is_some_and(|seconds| seconds >= limit))?;
    let message = format!("{}; the terminationTimeoutSeconds are {limit}", termination::sentence(stuck));
    Some(failed("TerminationTimeoutExceeded", message))
}

fn restart_after_failure(job: &Job<'_>, replicas: &Replicas<'_>, incident: &Incident<'_, '_>) -> Option<Restart> {
    if incident.failed.is_empty() {
        return None;
    }
    let uid = |replica: &&Replica<'_>| replica.pod.map(|pod| pod.uid().to_owned());
    let is_alone = incident.failed.iter().all(|replica| is_evaluator(replica));
    let (pods, consequence) = match job.restart_scope() {
        RestartScope::Job if !is_alone => (replicas.all_uids(), "all workers are restarted"),
        _ => (incident.failed.iter().filter_map(uid).collect(), "they are replaced"),
    };
    let list = list_with_exit_codes(job, &incident.failed);
    let (reason, message) = match (incident.treatment, incident.lost) {
        (Treatment::Ignore, Some(lost)) => {
            (RestartReason::WorkerLost, format!("{} is gone; then failed: {list}; {consequence}", lost.pod_name))
        }
        (Treatment::Ignore, None) => (RestartReason::Disruption, format!("disrupted: {list}; {consequence}")),
        _ => (RestartReason::Failure, format!("failed: {list}; {consequence}")),
    };
    Some(Restart { pods, charge: incident.charge, reason, message })
}

fn restart_for_changed_spec(replicas: &Replicas<'_>) -> Option<Restart> {
    replicas.has_pods_of_other_spec.then(|| Restart {
        pods: replicas.all_uids(),
        charge: Charge::default(),
        reason: RestartReason::SpecChanged,
        message: "the spec has changed; all Pods are made anew".to_owned(),
    })
}

/// A hang is charged as a failure is.
fn restart_after_hang(replicas: &Replicas<'_>, hang: Option<String>, now: Time) -> Option<Restart> {
    let charge = Charge { restarts: 1, at: Some(now) };
    Some(Restart { pods: replicas.all_uids(), charge, reason: RestartReason::Hang, message: hang? })
}

fn hangs_too_often(job: &Job<'_>, hang: Option<&str>, old_status: &TrainingJobStatus) -> Option<Finish> {
    let (hang, limit) = (hang?, job.backoff_limit());
    let is_exceeded = old_status.restart_count >= limit;
    is_exceeded.then(|| failed("BackoffLimitExceeded", format!("the backoffLimit of {limit} is used up; {hang}")))
}

/// Workers that cannot go on without each other are all restarted when the Pod of one of them is gone.
fn restart_for_lost_worker(replicas: &Replicas<'_>, incident: &Incident<'_, '_>) -> Option<Restart> {
    let lost = incident.lost?;
    Some(Restart {
        pods: replicas.all_uids(),
        charge: incident.charge,
        reason: RestartReason::WorkerLost,
        message: format!("{} is gone; all workers are restarted", lost.pod_name),
    })
}

fn creation_delay(
    job: &Job<'_>,
    replicas: &Replicas<'_>,
    old_status: &TrainingJobStatus,
    now: Time,
) -> Option<CreationDelay> {
    // New workers would connect to old ones that are shut down a moment later.
    if job.restart_scope() == RestartScope::Job && replicas.any(ReplicaState::Terminating) {
        return Some(CreationDelay::UntilOldPodsAreGone);
    }
    let begin = after(old_status.last_restart_time.as_ref(), Some(old_status.restart_delay_seconds))?;
    let seconds_left = begin.since(now);
    (seconds_left > 0).then_some(CreationDelay::Backoff(seconds_left))
}

#[cfg(test)]
mod tests {
    use super::{TrainingJobStatus, restart_delay};
    use crate::time::Time;

    #[test]
    fn the_first_restart_is_at_once_and_later_ones_wait_longer() {
        let now = Time::parse("2026-01-01T00:20:00Z");
        let text = |time: &str| Some(time.to_owned());
        let mut status = TrainingJobStatus::default();
        let mut delays = Vec::new();
        for _ in 0..8 {
            status.restart_delay_seconds = now.map(|now| restart_delay(&status, now)).unwrap_or_default();
            status.last_restart_time = text("2026-01-01T00:19:00Z");
            delays.push(status.restart_delay_seconds);
        }
        assert_eq!(delays, [0, 10, 20, 40, 80, 160, 300, 300]);
        for (running_since, expected) in [("2026-01-01T00:10:01Z", 300), ("2026-01-01T00:10:00Z", 0)] {
            status.running_since = text(running_since);
            assert_eq!(now.map(|now| restart_delay(&status, now)), Some(expected), "{running_since}");
        }
    }
}
