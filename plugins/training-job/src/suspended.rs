//! A job that shall not run for now: it has no Pods, and nothing that it would need them for.

use crate::answer::{Answer, Children};
use crate::api::{Phase, TrainingJobStatus};
use crate::job::Job;
use pilothouse_sdk::Response;

/// Answers. That the job is suspended is in the status before its Pods go.
pub fn respond(job: &Job<'_>, memory: &TrainingJobStatus) -> Response {
    const REASON: &str = "TrainingJobSuspended";
    let message = "spec.runPolicy.suspend is set";
    let mut answer = Answer::new(job, memory);
    answer.status = TrainingJobStatus {
        phase: Some(Phase::Pending),
        selector: answer.status.selector,
        restart_count: memory.restart_count,
        ..TrainingJobStatus::default()
    };
    answer.conditions.set("Suspended", true, REASON, message);
    answer.conditions.set("Running", false, REASON, message);
    answer.conditions.end("Restarting", REASON, message);
    if memory.is("Suspended") {
        answer.children = Children::Exactly { list: Vec::new(), removes: true };
    } else {
        answer.again_in(0);
    }
    answer.done()
}
