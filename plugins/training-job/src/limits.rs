//! The limits of a job: when they are over, and how a job ends that exceeds one. Pure.

use crate::api::{RestartScope, TerminationTimeoutAction, TrainingJobStatus};
use crate::backoff::disruptions;
use crate::finish::Finish;
use crate::incident::{Charge, Incident};
use crate::job::Job;
use crate::outcome::{list_with_exit_codes, runs_fully};
use crate::replicas::Replicas;
use crate::termination;
use pilothouse_pods::time::{Time, after};

/// When the job fails for running too long, if it has a limit and has started. As in `batch/v1`, this is counted from the last resumption.
pub fn deadline(job: &Job<'_>, status: &TrainingJobStatus) -> Option<Time> {
    after(status.start_time.as_ref(), job.active_deadline_seconds())
}

/// How many seconds the job has been active when it is stopped now, to be started anew later.
pub fn elapsed_seconds(status: &TrainingJobStatus, now: Time) -> u32 {
    let start = status.start_time.as_deref().and_then(Time::parse);
    status.elapsed_seconds.saturating_add(start.map_or(0, |start| now.since(start)))
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

/// How many restarts count when another one happens: none after a training that was long enough, whether anybody looked meanwhile or not.
pub fn counted_restarts(job: &Job<'_>, status: &TrainingJobStatus, at: Time) -> u32 {
    match backoff_reset(job, status) {
        Some(reset) if at >= reset => 0,
        _ => status.restart_count,
    }
}

/// What limits are held against.
pub struct Situation<'s, 'r> {
    /// The job.
    pub job: &'s Job<'s>,
    /// Its replicas.
    pub replicas: &'s Replicas<'r>,
    /// What has happened to them.
    pub incident: &'s Incident<'s, 'r>,
    /// Why the job would be restarted for a training that hangs.
    pub hang: Option<&'s str>,
    /// The last status.
    pub old_status: &'s TrainingJobStatus,
    /// The time.
    pub now: Time,
}

impl Situation<'_, '_> {
    /// How the job ends for exceeding a limit; none if it does not.
    pub fn exceeded_limit(&self) -> Option<Finish> {
        self.deadline()
            .or_else(|| self.backoff_limit())
            .or_else(|| self.backoff_limit_by_hang())
            .or_else(|| self.disruption_limit())
            .or_else(|| self.start_deadline())
            .or_else(|| self.termination_timeout())
    }

    fn deadline(&self) -> Option<Finish> {
        let limit = self.job.active_deadline_seconds()?;
        let is_exceeded = deadline(self.job, self.old_status).is_some_and(|deadline| self.now >= deadline);
        let message = || format!("the job ran longer than its activeDeadlineSeconds of {limit}");
        is_exceeded.then(|| Finish::failed("DeadlineExceeded", message()))
    }

    /// One rule for all restarts: those so far, with those that the kubelet has just made or that the failures ask for, may be as
    /// many as the limit.
    fn backoff_limit(&self) -> Option<Finish> {
        let Charge { restarts, at } = self.incident.charge;
        let so_far = counted_restarts(self.job, self.old_status, at.unwrap_or(self.now));
        let is_exceeded = restarts > 0 && so_far.saturating_add(restarts) > self.job.backoff_limit();
        let failed = &self.incident.failed;
        let last = (!failed.is_empty()).then(|| format!("last: {}", list_with_exit_codes(self.job, failed)));
        is_exceeded.then(|| self.without_budget(last.as_deref()))
    }

    fn backoff_limit_by_hang(&self) -> Option<Finish> {
        let hang = self.hang?;
        let so_far = counted_restarts(self.job, self.old_status, self.now);
        (so_far >= self.job.backoff_limit()).then(|| self.without_budget(Some(hang)))
    }

    fn without_budget(&self, last: Option<&str>) -> Finish {
        let last = last.map(|last| format!("; {last}")).unwrap_or_default();
        let message = format!("the backoffLimit of {} is used up{last}", self.job.backoff_limit());
        Finish::failed("BackoffLimitExceeded", message)
    }

    fn disruption_limit(&self) -> Option<Finish> {
        let limit = self.job.disruption_limit();
        let is_exceeded = self.incident.has_disruption() && disruptions(self.old_status, self.now) > limit;
        let message =
            || format!("workers were lost or disrupted more than {limit} times in a row, the disruptionLimit");
        is_exceeded.then(|| Finish::failed("DisruptionLimitExceeded", message()))
    }

    fn start_deadline(&self) -> Option<Finish> {
        let limit = self.job.start_deadline_seconds()?;
        let is_over = start_deadline(self.job, self.old_status).is_some_and(|deadline| self.now >= deadline);
        let message = || {
            let obstacle = self.old_status.obstacle().map(|obstacle| format!("; {obstacle}")).unwrap_or_default();
            format!("not all Pods ran within the startDeadlineSeconds of {limit}{obstacle}")
        };
        (is_over && !runs_fully(self.job, self.replicas)).then(|| Finish::failed("StartDeadlineExceeded", message()))
    }

    fn termination_timeout(&self) -> Option<Finish> {
        let policy = self.job.termination_policy();
        let limit = policy.timeout_seconds.filter(|_| policy.on_timeout == TerminationTimeoutAction::Fail)?;
        let of_replicas = self.replicas.all.iter().filter_map(|replica| replica.pod);
        // Workers that go on without each other do not wait for one that was scaled away.
        let others = self.replicas.others.iter().copied();
        let others = others.filter(|_| self.job.restart_scope() == RestartScope::Job);
        let overdue = of_replicas.chain(others).find(|pod| policy.is_exceeded_by(pod, self.now))?;
        let notice = termination::last_notice(overdue, self.now);
        let message = format!("{notice}; the terminationTimeoutSeconds are {limit}");
        Some(Finish::failed("TerminationTimeoutExceeded", message))
    }
}
