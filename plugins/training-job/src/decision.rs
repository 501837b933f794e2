//! What happens next to an active job: a pure function of its replicas, its last status and the time.

use crate::api::{Phase, RestartPolicy, RestartScope, TrainingJobStatus};
use crate::job::Job;
use crate::outcome::{final_failures, list_with_exit_codes, retried_failures, success};
use crate::replicas::{Replica, ReplicaState, Replicas};
use crate::time::Time;

/// Seconds before the second restart. Each further restart waits twice as long.
const INITIAL_BACKOFF: u32 = 10;

/// The longest backoff, in seconds.
const MAX_BACKOFF: u32 = 300;

/// What happens next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The job has ended.
    Finish(Finish),
    /// Pods are removed, so that new ones can take their places.
    Restart(Restart),
    /// The Pods stay, and missing ones are created: at once, or later if there is a reason to wait.
    SyncPods(Option<CreationDelay>),
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
    /// How many restarts it counts as against the backoff limit.
    pub counted: u32,
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
    /// The user has changed the spec.
    SpecChanged,
    /// The Pod of a worker is gone, and the others cannot go on without it.
    WorkerLost,
    /// Pods of another template version would have to be kept beside new ones.
    PluginChanged,
}

impl RestartReason {
    /// As the reason of conditions and Events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Failure => "TrainingJobRestarting",
            Self::SpecChanged => "SpecChanged",
            Self::WorkerLost => "WorkerLost",
            Self::PluginChanged => "PluginChanged",
        }
    }
}

/// Decides.
pub fn decide(job: &Job<'_>, replicas: &Replicas<'_>, old_status: &TrainingJobStatus, now: Time) -> Decision {
    // What the training itself ended comes before the limits: a job that succeeds at its deadline has succeeded.
    let finish = ended_by_itself(job, replicas)
        .or_else(|| deadline_exceeded(job, old_status, now))
        .or_else(|| backoff_limit_exceeded(job, replicas, old_status));
    if let Some(finish) = finish {
        return Decision::Finish(finish);
    }
    let restart = restart_after_failure(job, replicas)
        .or_else(|| restart_for_changed_spec(replicas))
        .or_else(|| restart_for_lost_worker(replicas, old_status));
    if let Some(restart) = restart {
        return Decision::Restart(restart);
    }
    let delay = creation_delay(replicas, old_status, now);
    match restart_for_template_version(replicas, delay) {
        Some(restart) => Decision::Restart(restart),
        None => Decision::SyncPods(delay),
    }
}

/// When the job fails for running too long, if it has a limit and has started.
pub fn deadline(job: &Job<'_>, status: &TrainingJobStatus) -> Option<Time> {
    let start = status.start_time.as_deref().and_then(Time::parse)?;
    job.active_deadline_seconds().map(|seconds| start.plus(seconds))
}

fn ended_by_itself(job: &Job<'_>, replicas: &Replicas<'_>) -> Option<Finish> {
    if let Some(message) = success(job, replicas) {
        return Some(Finish { phase: Phase::Succeeded, reason: "TrainingJobSucceeded", message });
    }
    let failures = final_failures(job, replicas);
    if failures.is_empty() {
        return None;
    }
    let message = format!("failed for good: {}", list_with_exit_codes(job, &failures));
    Some(Finish { phase: Phase::Failed, reason: "TrainingJobFailed", message })
}

fn deadline_exceeded(job: &Job<'_>, old_status: &TrainingJobStatus, now: Time) -> Option<Finish> {
    let limit = job.active_deadline_seconds()?;
    let is_exceeded = deadline(job, old_status).is_some_and(|deadline| now >= deadline);
    let message = format!("the job ran longer than its activeDeadlineSeconds of {limit}");
    is_exceeded.then_some(Finish { phase: Phase::Failed, reason: "DeadlineExceeded", message })
}

/// Counts the restarts so far with those that the present failures would need, or with those that the kubelet made by itself.
fn backoff_limit_exceeded(job: &Job<'_>, replicas: &Replicas<'_>, old_status: &TrainingJobStatus) -> Option<Finish> {
    let limit = job.backoff_limit();
    let failures = retried_failures(job, replicas);
    let by_failures = !failures.is_empty() && old_status.restart_count + restarts_needed(replicas, &failures) > limit;
    let container_restarts = container_restarts(job, replicas);
    // The kubelet has made these restarts already, so the limit is used up when it is reached. A limit of 0 allows none, and
    // the first one ends the job.
    let by_kubelet = container_restarts > 0 && old_status.restart_count + container_restarts >= limit.max(1);
    if !by_failures && !by_kubelet {
        return None;
    }
    let last = match failures.is_empty() {
        true => String::new(),
        false => format!("; last: {}", list_with_exit_codes(job, &failures)),
    };
    let message = format!("the backoffLimit of {limit} is used up{last}");
    Some(Finish { phase: Phase::Failed, reason: "BackoffLimitExceeded", message })
}

/// How many restarts some failures need: one for each, or a single one for the whole job.
fn restarts_needed(replicas: &Replicas<'_>, failures: &[&Replica<'_>]) -> u32 {
    let count = u32::try_from(failures.len()).unwrap_or(u32::MAX);
    if replicas.restart_scope == RestartScope::Job { count.min(1) } else { count }
}

/// How many times the kubelet has restarted containers within Pods that stay.
fn container_restarts(job: &Job<'_>, replicas: &Replicas<'_>) -> u32 {
    if !matches!(job.restart_policy(), RestartPolicy::Always | RestartPolicy::OnFailure) {
        return 0;
    }
    let staying = replicas.all.iter().filter(|replica| replica.state != ReplicaState::Terminating);
    let pods = staying.filter_map(|replica| replica.pod);
    pods.map(|pod| pod.restart_count(job.spec.framework.as_str())).sum()
}

fn restart_after_failure(job: &Job<'_>, replicas: &Replicas<'_>) -> Option<Restart> {
    let failures = retried_failures(job, replicas);
    if failures.is_empty() {
        return None;
    }
    let failed_pods = || failures.iter().filter_map(|replica| replica.pod).map(|pod| pod.uid().to_owned()).collect();
    let (pods, consequence) = match replicas.restart_scope {
        RestartScope::Job => (replicas.all_uids(), "all workers are restarted"),
        RestartScope::Worker => (failed_pods(), "they are replaced"),
    };
    Some(Restart {
        pods,
        counted: restarts_needed(replicas, &failures),
        reason: RestartReason::Failure,
        message: format!("failed: {}; {consequence}", list_with_exit_codes(job, &failures)),
    })
}

fn restart_for_changed_spec(replicas: &Replicas<'_>) -> Option<Restart> {
    let message = "the spec has changed; all Pods are made anew";
    let is_due = replicas.has_pods_of_other_spec;
    is_due.then(|| uncounted_restart_of_all(replicas, RestartReason::SpecChanged, message.to_owned()))
}

/// Workers that cannot go on without each other are all restarted when the Pod of one of them is gone.
fn restart_for_lost_worker(replicas: &Replicas<'_>, old_status: &TrainingJobStatus) -> Option<Restart> {
    let lost = replicas.all.iter().find(|replica| replica.is_lost)?;
    let others_are_active = replicas.any(ReplicaState::Pending) || replicas.any(ReplicaState::Running);
    let is_due = replicas.restart_scope == RestartScope::Job && old_status.start_time.is_some() && others_are_active;
    let message = || format!("{} is gone; all workers are restarted", lost.pod_name);
    is_due.then(|| uncounted_restart_of_all(replicas, RestartReason::WorkerLost, message()))
}

/// Pods of another template version cannot be returned as they are, and whatever is not returned is deleted. So no Pod can be
/// created or removed beside them: all are replaced.
fn restart_for_template_version(replicas: &Replicas<'_>, delay: Option<CreationDelay>) -> Option<Restart> {
    let creates_pods = delay.is_none() && replicas.any(ReplicaState::Missing);
    let message = "Pods that another version of the plugin made are made anew, for one of them must be";
    let is_due = replicas.has_pods_of_other_template_version && (creates_pods || replicas.has_surplus_pods);
    is_due.then(|| uncounted_restart_of_all(replicas, RestartReason::PluginChanged, message.to_owned()))
}

/// A restart that does not count against the backoff limit, since nothing failed.
fn uncounted_restart_of_all(replicas: &Replicas<'_>, reason: RestartReason, message: String) -> Restart {
    Restart { pods: replicas.all_uids(), counted: 0, reason, message }
}

fn creation_delay(replicas: &Replicas<'_>, old_status: &TrainingJobStatus, now: Time) -> Option<CreationDelay> {
    // New workers would connect to old ones that are shut down a moment later.
    if replicas.restart_scope == RestartScope::Job && replicas.any(ReplicaState::Terminating) {
        return Some(CreationDelay::UntilOldPodsAreGone);
    }
    let last_restart = old_status.last_restart_time.as_deref().and_then(Time::parse)?;
    let seconds_left = last_restart.plus(backoff(old_status.restart_count)).since(now);
    (seconds_left > 0).then_some(CreationDelay::Backoff(seconds_left))
}

/// How many seconds after the begin of a restart its Pods are created.
fn backoff(restarts: u32) -> u32 {
    match restarts {
        0 | 1 => 0,
        more => INITIAL_BACKOFF.saturating_mul(1 << (more - 2).min(16)).min(MAX_BACKOFF),
    }
}

#[cfg(test)]
mod tests {
    use super::backoff;

    #[test]
    fn the_first_restart_is_at_once_and_later_ones_wait_longer() {
        let backoffs = [0, 1, 2, 3, 4, 5, 6, 7, 8, 100].map(backoff);
        assert_eq!(backoffs, [0, 0, 10, 20, 40, 80, 160, 300, 300, 300]);
    }
}
