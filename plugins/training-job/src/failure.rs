//! What becomes of one failed replica: the rules of the job, then the cluster's own doing, then the restart policy. Pure.

use crate::api::{
    ExitCodeOperator, OnExitCodes, OnPodCondition, PodFailureAction, PodFailureRule, ReplicaType, RestartPolicy,
};
use crate::disruption::{DISRUPTION_TARGET, is_disrupted};
use crate::job::{Job, SuccessRule};
use crate::replicas::Replica;
use pilothouse_pods::observed_pod::ObservedPod;
use pilothouse_pods::time::Time;

/// Exit codes from here on say that a signal killed the container: 128 plus the signal's number.
const FIRST_SIGNAL_EXIT_CODE: i32 = 128;

/// What becomes of a failure. Later ones are more severe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Treatment {
    /// A restart that does not count against the backoff limit.
    Ignore,
    /// A restart that counts.
    Count,
    /// The job fails.
    FailJob,
}

/// What becomes of the failure of a replica.
pub fn treatment(job: &Job<'_>, replica_type: ReplicaType, pod: &ObservedPod) -> Treatment {
    let container = job.container();
    if let Some(rule) = job.failure_rules().iter().find(|rule| fits(rule, pod, container)) {
        return of_action(rule.action);
    }
    if is_disrupted(pod) {
        return Treatment::Ignore;
    }
    let is_retried = match job.restart_policy(replica_type) {
        RestartPolicy::Always | RestartPolicy::OnFailure => true,
        RestartPolicy::Never => false,
        // A Pod without an exit code did not fail by itself.
        RestartPolicy::ExitCode => pod.exit_code(container).is_none_or(|code| code >= FIRST_SIGNAL_EXIT_CODE),
    };
    if is_retried { Treatment::Count } else { Treatment::FailJob }
}

/// What becomes of a replica whose Pod is being deleted, if that is more than to be replaced: a rule names a condition that it has, as
/// `DisruptionTarget` after a call of the eviction API. A Pod that is deleted has left, so exit codes and reasons alone say nothing.
pub fn treatment_of_lost(job: &Job<'_>, replica: &Replica<'_>) -> Option<Treatment> {
    let pod = replica.pod.filter(|_| replica.is_lost)?;
    let mut rules = job.failure_rules().iter().filter(|rule| !rule.on_pod_conditions.is_empty());
    let rule = rules.find(|rule| fits(rule, pod, job.container()))?;
    Some(of_action(rule.action)).filter(|treatment| *treatment != Treatment::Ignore)
}

fn of_action(action: PodFailureAction) -> Treatment {
    match action {
        PodFailureAction::FailJob => Treatment::FailJob,
        PodFailureAction::Ignore => Treatment::Ignore,
        PodFailureAction::Count => Treatment::Count,
    }
}

/// Whether a failure that is not retried ends the job. Where the chief alone decides, other workers may fail, and an evaluator
/// may anywhere. Without a parameter server, no worker gets on.
pub fn is_decisive(job: &Job<'_>, replica: &Replica<'_>) -> bool {
    match replica.id.replica_type {
        ReplicaType::ParameterServer | ReplicaType::Chief | ReplicaType::Launcher => true,
        ReplicaType::Evaluator => false,
        ReplicaType::Worker => {
            (job.chief() == replica.id && job.success_rule() == SuccessRule::Chief) || !job.tolerates_failed_workers()
        }
    }
}

/// When a Pod failed or began to go, by the clocks of the cluster: the earliest of its marks.
pub fn time_of_end(job: &Job<'_>, pod: &ObservedPod) -> Option<Time> {
    let disrupted = Some(DISRUPTION_TARGET).filter(|_| is_disrupted(pod)).and_then(|it| pod.condition_since(it));
    let ended = pod.end(job.container()).and_then(|end| end.finished_at);
    let deleted = pod.deletion().and_then(|it| Some(Time::parse(it.ends_at)?.minus(it.grace_period_seconds)));
    [disrupted, ended].into_iter().flatten().filter_map(Time::parse).chain(deleted).min()
}

/// Whether a Pod fits everything that a rule gives. Each gives something: `validate.rs` refuses others.
fn fits(rule: &PodFailureRule, pod: &ObservedPod, container: &str) -> bool {
    let (reasons, conditions) = (rule.on_reasons.as_slice(), rule.on_pod_conditions.as_slice());
    rule.on_exit_codes.as_ref().is_none_or(|codes| has_exit_code(codes, pod.exit_code(container)))
        && (reasons.is_empty() || reasons.iter().any(|reason| has_reason(pod, reason, container)))
        && (conditions.is_empty() || conditions.iter().any(|condition| has_condition(pod, condition)))
}

fn has_exit_code(codes: &OnExitCodes, exit_code: Option<i32>) -> bool {
    exit_code.is_some_and(|code| codes.values.contains(&code) == (codes.operator == ExitCodeOperator::In))
}

fn has_reason(pod: &ObservedPod, reason: &str, container: &str) -> bool {
    [pod.reason(), pod.cause().reason, pod.failure_of(container).reason].contains(&reason)
}

fn has_condition(pod: &ObservedPod, condition: &OnPodCondition) -> bool {
    pod.has_condition(&condition.condition_type, condition.status.as_deref().unwrap_or("True"))
}
