//! Whether a job has ended by itself: the rules of success and of failures that are not retried. Pure.

use crate::api::RestartPolicy;
use crate::group::{Group, Member, State};
use crate::job::{Job, Role, SuccessRule};

/// The first exit code that stands for a container that was killed.
const FIRST_RETRIED: i32 = 128;

/// Why the job has succeeded, if it has.
pub fn success(job: &Job<'_>, group: &Group<'_>) -> Option<String> {
    let succeeded = |member: &Member<'_>| member.state == State::Succeeded;
    let mut workers = group.workers();
    match job.success_rule() {
        SuccessRule::Chief if workers.next().is_some_and(succeeded) => Some("worker 0 has succeeded".to_owned()),
        SuccessRule::All if workers.all(succeeded) => Some(format!("{} workers have succeeded", job.spec.workers)),
        SuccessRule::Any => {
            let first = workers.find(|worker| succeeded(worker))?;
            Some(format!("worker {} has succeeded", first.index))
        }
        _ => None,
    }
}

/// The members whose failure is final and the end of the job.
pub fn final_failures<'g, 'r>(job: &Job<'_>, group: &'g Group<'r>) -> Vec<&'g Member<'r>> {
    let failed = group.members.iter().filter(|member| member.state == State::Failed);
    failed.filter(|member| !is_retried(job, member) && is_decisive(job, member)).collect()
}

/// The members whose failure is retried.
pub fn retried_failures<'g, 'r>(job: &Job<'_>, group: &'g Group<'r>) -> Vec<&'g Member<'r>> {
    group.members.iter().filter(|member| member.state == State::Failed && is_retried(job, member)).collect()
}

/// Whether the workers that the job is judged by run.
pub fn is_running(job: &Job<'_>, group: &Group<'_>) -> bool {
    let judged = if job.success_rule() == SuccessRule::Chief { 1 } else { usize::MAX };
    group.workers().take(judged).any(|worker| worker.state == State::Running)
}

/// Members in a sentence, with their exit codes: `mnist-worker-1 (exit code 137), mnist-worker-2 and 3 more`.
pub fn name_them(job: &Job<'_>, members: &[&Member<'_>]) -> String {
    const SHOWN: usize = 5;
    let named = members.iter().take(SHOWN).map(|member| match exit_code(job, member) {
        Some(code) => format!("{} (exit code {code})", member.name),
        None => member.name.clone(),
    });
    let list = named.collect::<Vec<_>>().join(", ");
    match members.len().saturating_sub(SHOWN) {
        0 => list,
        more => format!("{list} and {more} more"),
    }
}

/// Where the chief alone is judged, other workers may fail. Nothing works without parameter servers.
fn is_decisive(job: &Job<'_>, member: &Member<'_>) -> bool {
    member.role == Role::ParameterServer || member.index == 0 || job.success_rule() != SuccessRule::Chief
}

fn is_retried(job: &Job<'_>, member: &Member<'_>) -> bool {
    match job.restart_policy() {
        RestartPolicy::Always | RestartPolicy::OnFailure => true,
        RestartPolicy::Never => false,
        // A Pod without an exit code did not fail by itself: it was evicted, or its node was lost.
        RestartPolicy::ExitCode => exit_code(job, member).is_none_or(|code| code >= FIRST_RETRIED),
    }
}

fn exit_code(job: &Job<'_>, member: &Member<'_>) -> Option<i32> {
    member.pod.and_then(|pod| pod.exit_code(job.spec.framework.word()))
}
