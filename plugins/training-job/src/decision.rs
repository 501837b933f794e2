//! What happens next to a job that runs: a function from the members as they are, what is remembered and the time to one
//! step. Pure.

use crate::api::{Phase, RestartPolicy, RestartScope, TrainingJobStatus};
use crate::group::{Group, Member, State};
use crate::job::Job;
use crate::outcome::{final_failures, name_them, retried_failures, success};
use crate::time::Time;

/// Seconds before the second restart; every further one waits twice as long.
const FIRST_DELAY: u32 = 10;

/// The longest that a restart waits, in seconds.
const LONGEST_DELAY: u32 = 300;

/// The reason of a restart for which the job must be able to start.
pub const SPEC_CHANGED: &str = "SpecChanged";

/// What happens next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// The job has ended.
    Finish(Finish),
    /// Pods are to go, so that new ones can take their place.
    Restart(Restart),
    /// Missing Pods are made, now or in so many seconds.
    CarryOn {
        /// How long to wait before Pods are made; none where nothing stands in the way.
        hold: Option<Hold>,
    },
}

/// Why Pods cannot be made yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// Old Pods are on their way out.
    UntilGone,
    /// The last restart was so recently that the next one waits, in seconds.
    Seconds(u32),
}

/// How a job has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finish {
    /// `Succeeded` or `Failed`.
    pub phase: Phase,
    /// One word.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

/// Which Pods go, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restart {
    /// UIDs of the Pods.
    pub pods: Vec<String>,
    /// How much of the backoff limit it uses up.
    pub counted: u32,
    /// One word.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

/// Decides. What ended the job comes first, then its limits, then what can be mended.
pub fn decide(job: &Job<'_>, group: &Group<'_>, memory: &TrainingJobStatus, now: Time) -> Step {
    let finish = ended(job, group).or_else(|| overdue(job, memory, now)).or_else(|| worn_out(job, group, memory));
    if let Some(finish) = finish {
        return Step::Finish(finish);
    }
    let restart = failed(job, group).or_else(|| outdated(group)).or_else(|| lost(group, memory));
    if let Some(restart) = restart {
        return Step::Restart(restart);
    }
    let hold = hold(group, memory, now);
    match other_form(group, hold) {
        Some(restart) => Step::Restart(restart),
        None => Step::CarryOn { hold },
    }
}

/// When the job fails for running too long, if it does.
pub fn deadline(job: &Job<'_>, memory: &TrainingJobStatus) -> Option<Time> {
    let start = memory.start_time.as_deref().and_then(Time::parse)?;
    job.deadline().map(|seconds| start.plus(seconds))
}

fn ended(job: &Job<'_>, group: &Group<'_>) -> Option<Finish> {
    if let Some(message) = success(job, group) {
        return Some(Finish { phase: Phase::Succeeded, reason: "TrainingJobSucceeded", message });
    }
    let failures = final_failures(job, group);
    let message = || format!("failed for good: {}", name_them(job, &failures));
    (!failures.is_empty()).then(|| Finish { phase: Phase::Failed, reason: "TrainingJobFailed", message: message() })
}

fn overdue(job: &Job<'_>, memory: &TrainingJobStatus, now: Time) -> Option<Finish> {
    let limit = job.deadline()?;
    let is_over = deadline(job, memory).is_some_and(|deadline| now >= deadline);
    let message = format!("the job ran longer than its activeDeadlineSeconds of {limit}");
    is_over.then_some(Finish { phase: Phase::Failed, reason: "DeadlineExceeded", message })
}

/// The backoff limit: restarts that were counted and those that the failures at hand would add, or restarts that the
/// kubelet made by itself.
fn worn_out(job: &Job<'_>, group: &Group<'_>, memory: &TrainingJobStatus) -> Option<Finish> {
    let limit = job.backoff_limit();
    let failures = retried_failures(job, group);
    let is_over = !failures.is_empty() && memory.restart_count + cost(group, &failures) > limit;
    let in_place = restarts_in_place(job, group);
    let is_worn = in_place > 0 && memory.restart_count + in_place >= limit.max(1);
    let last = if failures.is_empty() { String::new() } else { format!("; last: {}", name_them(job, &failures)) };
    let message = format!("the backoffLimit of {limit} is used up{last}");
    (is_over || is_worn).then_some(Finish { phase: Phase::Failed, reason: "BackoffLimitExceeded", message })
}

/// What failures cost: each its own restart, or all of them that of the whole job.
fn cost(group: &Group<'_>, failures: &[&Member<'_>]) -> u32 {
    let count = u32::try_from(failures.len()).unwrap_or(u32::MAX);
    if group.scope == RestartScope::Job { count.min(1) } else { count }
}

fn restarts_in_place(job: &Job<'_>, group: &Group<'_>) -> u32 {
    if !matches!(job.restart_policy(), RestartPolicy::Always | RestartPolicy::OnFailure) {
        return 0;
    }
    let staying = group.members.iter().filter(|member| member.state != State::Leaving).filter_map(|member| member.pod);
    staying.map(|pod| pod.restarts(job.spec.framework.word())).sum()
}

fn failed(job: &Job<'_>, group: &Group<'_>) -> Option<Restart> {
    let failures = retried_failures(job, group);
    let alone = || failures.iter().filter_map(|member| member.pod).map(|pod| pod.uid().to_owned()).collect();
    let whole = group.scope == RestartScope::Job;
    let what = if whole { "all workers are restarted" } else { "they are replaced" };
    (!failures.is_empty()).then(|| Restart {
        pods: if whole { group.all_uids() } else { alone() },
        counted: cost(group, &failures),
        reason: "TrainingJobRestarting",
        message: format!("failed: {}; {what}", name_them(job, &failures)),
    })
}

fn outdated(group: &Group<'_>) -> Option<Restart> {
    let message = "the spec has changed; all Pods are made anew";
    group.has_outdated.then(|| uncounted(group, SPEC_CHANGED, message.to_owned()))
}

/// Workers that cannot go on without each other are all restarted when the Pod of one is gone.
fn lost(group: &Group<'_>, memory: &TrainingJobStatus) -> Option<Restart> {
    let lost = group.members.iter().find(|member| member.is_lost)?;
    let others = group.members.iter().any(|member| matches!(member.state, State::Pending | State::Running));
    let matters = group.scope == RestartScope::Job && memory.start_time.is_some() && others;
    matters.then(|| uncounted(group, "WorkerLost", format!("{} is gone; all workers are restarted", lost.name)))
}

/// A Pod cannot be made or removed beside Pods of another form, for those cannot be returned as they are.
fn other_form(group: &Group<'_>, hold: Option<Hold>) -> Option<Restart> {
    let makes = hold.is_none() && group.any(State::Missing);
    let message = "Pods that another version of the plugin made are made anew, for one of them must be";
    (group.has_other_form && (makes || group.has_surplus))
        .then(|| uncounted(group, "PluginChanged", message.to_owned()))
}

fn uncounted(group: &Group<'_>, reason: &'static str, message: String) -> Restart {
    Restart { pods: group.all_uids(), counted: 0, reason, message }
}

fn hold(group: &Group<'_>, memory: &TrainingJobStatus, now: Time) -> Option<Hold> {
    if group.scope == RestartScope::Job && group.any(State::Leaving) {
        return Some(Hold::UntilGone);
    }
    let last = memory.last_restart_time.as_deref().and_then(Time::parse)?;
    let wait = last.plus(delay(memory.restart_count)).since(now);
    (wait > 0).then_some(Hold::Seconds(wait))
}

/// How long the Pods of a restart wait after it began.
fn delay(restarts: u32) -> u32 {
    match restarts {
        0 | 1 => 0,
        more => FIRST_DELAY.saturating_mul(1 << (more - 2).min(16)).min(LONGEST_DELAY),
    }
}

#[cfg(test)]
mod tests {
    use super::delay;

    #[test]
    fn the_first_restart_is_at_once_and_later_ones_wait_longer() {
        let delays = [0, 1, 2, 3, 4, 5, 6, 7, 8, 100].map(delay);
        assert_eq!(delays, [0, 0, 10, 20, 40, 80, 160, 300, 300, 300]);
    }
}
