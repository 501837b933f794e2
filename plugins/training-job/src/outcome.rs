//! Whether a job has ended by itself: the rules of success, and of failures that are not retried. Pure.

use crate::api::RestartPolicy;
use crate::job::{Job, ReplicaType, SuccessRule};
use crate::replicas::{Replica, ReplicaState, Replicas};

/// Exit codes from here on say that a signal killed the container: 128 plus the signal's number.
const FIRST_SIGNAL_EXIT_CODE: i32 = 128;

/// Why the job has succeeded, if it has.
pub fn success(job: &Job<'_>, replicas: &Replicas<'_>) -> Option<String> {
    let has_succeeded = |replica: &Replica<'_>| replica.state == ReplicaState::Succeeded;
    let mut workers = replicas.workers();
    match job.success_rule() {
        SuccessRule::Chief if workers.next().is_some_and(has_succeeded) => Some("worker 0 has succeeded".to_owned()),
        SuccessRule::All if workers.all(has_succeeded) => Some(format!("{} workers have succeeded", job.spec.workers)),
        SuccessRule::Any => {
            let first = workers.find(|worker| has_succeeded(worker))?;
            Some(format!("worker {} has succeeded", first.id.index))
        }
        _ => None,
    }
}

/// The replicas whose failure is not retried and ends the job.
pub fn final_failures<'g, 'r>(job: &Job<'_>, replicas: &'g Replicas<'r>) -> Vec<&'g Replica<'r>> {
    let is_final = |replica: &&Replica<'_>| !is_retried(job, replica) && is_decisive(job, replica);
    failed(replicas).filter(is_final).collect()
}

/// The replicas whose failure is retried.
pub fn retried_failures<'g, 'r>(job: &Job<'_>, replicas: &'g Replicas<'r>) -> Vec<&'g Replica<'r>> {
    failed(replicas).filter(|replica| is_retried(job, replica)).collect()
}

/// Whether one of the workers that decide about the job runs.
pub fn is_running(job: &Job<'_>, replicas: &Replicas<'_>) -> bool {
    let deciding = if job.success_rule() == SuccessRule::Chief { 1 } else { usize::MAX };
    replicas.workers().take(deciding).any(|worker| worker.state == ReplicaState::Running)
}

/// Names of replicas with their exit codes: `mnist-worker-1 (exit code 137), mnist-worker-2 and 3 more`.
pub fn list_with_exit_codes(job: &Job<'_>, replicas: &[&Replica<'_>]) -> String {
    const SHOWN: usize = 5;
    let shown = replicas.iter().take(SHOWN).map(|replica| match exit_code(job, replica) {
        Some(code) => format!("{} (exit code {code})", replica.pod_name),
        None => replica.pod_name.clone(),
    });
    let list = shown.collect::<Vec<_>>().join(", ");
    match replicas.len().saturating_sub(SHOWN) {
        0 => list,
        more => format!("{list} and {more} more"),
    }
}

fn failed<'g, 'r>(replicas: &'g Replicas<'r>) -> impl Iterator<Item = &'g Replica<'r>> {
    replicas.all.iter().filter(|replica| replica.state == ReplicaState::Failed)
}

/// Whether a failure of this replica ends the job. Where the chief alone decides, other workers may fail. Without a parameter
/// server, no worker gets on.
fn is_decisive(job: &Job<'_>, replica: &Replica<'_>) -> bool {
    replica.id.replica_type == ReplicaType::ParameterServer
        || replica.id.index == 0
        || job.success_rule() != SuccessRule::Chief
}

fn is_retried(job: &Job<'_>, replica: &Replica<'_>) -> bool {
    match job.restart_policy() {
        RestartPolicy::Always | RestartPolicy::OnFailure => true,
        RestartPolicy::Never => false,
        // A Pod without an exit code did not fail by itself: it was evicted, or its node is gone.
        RestartPolicy::ExitCode => exit_code(job, replica).is_none_or(|code| code >= FIRST_SIGNAL_EXIT_CODE),
    }
}

fn exit_code(job: &Job<'_>, replica: &Replica<'_>) -> Option<i32> {
    replica.pod.and_then(|pod| pod.exit_code(job.spec.framework.as_str()))
}
