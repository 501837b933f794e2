//! A suspended job: it has no Pods, and none of the other children.

use crate::api::{Phase, TrainingJobStatus};
use crate::job::Job;
use crate::job_response::{Children, JobResponse};
use pilothouse_pods::time::Time;
use pilothouse_sdk::{Error, Response};

/// The response. The status says that the job is suspended before its Pods go.
///
/// # Errors
/// The clock cannot be read.
pub fn respond(job: &Job<'_>, old_status: &TrainingJobStatus) -> Result<Response, Error> {
    const REASON: &str = "TrainingJobSuspended";
    let message = "spec.runPolicy.suspend is set";
    let mut response = JobResponse::new(job, old_status);
    // The start time and the statuses of replicas go, since the job starts anew when it is resumed. Restarts still count.
    response.status = TrainingJobStatus {
        phase: Some(Phase::Pending),
        selector: response.status.selector,
        restart_count: old_status.restart_count,
        last_failure_time: old_status.last_failure_time.clone(),
        progress: old_status.progress.clone(),
        elapsed_seconds: elapsed_seconds(old_status)?,
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
    Ok(response.done())
}

/// How many seconds the job has been active, with those before earlier suspensions.
fn elapsed_seconds(old_status: &TrainingJobStatus) -> Result<u32, Error> {
    let start = old_status.start_time.as_deref().and_then(Time::parse);
    let active = start.map(|start| Time::now().map(|now| now.since(start))).transpose()?;
    Ok(old_status.elapsed_seconds.saturating_add(active.unwrap_or_default()))
}
