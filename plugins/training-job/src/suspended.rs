//! A suspended job: it has no Pods, and none of the other children.

use crate::api::{Phase, TrainingJobStatus};
use crate::job::Job;
use crate::job_response::{Children, JobResponse};
use pilothouse_sdk::Response;

/// The response. The status says that the job is suspended before its Pods go.
pub fn respond(job: &Job<'_>, old_status: &TrainingJobStatus) -> Response {
    const REASON: &str = "TrainingJobSuspended";
    let message = "spec.runPolicy.suspend is set";
    let mut response = JobResponse::new(job, old_status);
    // The start time and the statuses of replicas go, since the job starts anew when it is resumed. Restarts still count.
    response.status = TrainingJobStatus {
        phase: Some(Phase::Pending),
        selector: response.status.selector,
        restart_count: old_status.restart_count,
        ..TrainingJobStatus::default()
    };
    response.conditions.set_true("Suspended", REASON, message);
    response.conditions.set_false("Running", REASON, message);
    response.conditions.end("Restarting", REASON, message);
    if old_status.is_condition_true("Suspended") {
        response.children = Children::Exactly { list: Vec::new(), removes_pods: true };
    } else {
        response.requeue_within(0);
    }
    response.done()
}
