//! A suspended job: it has no Pods, and then none of the other children.

use crate::api::{Phase, TrainingJobStatus};
use crate::children::workload;
use crate::job::Job;
use crate::job_response::{Children, JobResponse};
use crate::limits::elapsed_seconds;
use crate::observed::Observed;
use crate::termination;
use pilothouse_pods::time::Time;
use pilothouse_sdk::{Error, Response};

/// The response. The status says that the job is suspended before its Pods go.
///
/// # Errors
/// The clock cannot be read.
pub fn respond(job: &Job<'_>, old_status: &TrainingJobStatus, observed: Observed<'_>) -> Result<Response, Error> {
    const REASON: &str = "TrainingJobSuspended";
    let message = "spec.runPolicy.suspend is set";
    let (now, pods, policy) = (Time::now()?, observed.pods, job.termination_policy());
    observed.children.force(&policy.forced_now(pods, old_status, now));
    let mut response = JobResponse::new(job, old_status, pods);
    // The start time and the statuses of replicas go, since the job starts anew when it is resumed. Restarts still count.
    response.status = TrainingJobStatus {
        phase: Some(Phase::Pending),
        selector: response.status.selector,
        restart_count: old_status.restart_count,
        last_failure_time: old_status.last_failure_time.clone(),
        progress: old_status.progress.clone(),
        elapsed_seconds: elapsed_seconds(old_status, now),
        // The job may be resumed before all of them are gone, or even are being deleted.
        retiring_pods: pods.iter().map(|pod| pod.uid().to_owned()).collect(),
        stuck_pods: policy.stuck(pods, now),
        ..TrainingJobStatus::default()
    };
    response.conditions.set_true("Suspended", REASON, message);
    response.conditions.set_false("Running", REASON, message);
    response.conditions.end("Restarting", REASON, message);
    response.requeue_after = policy.next_look(pods, now);
    if termination::tells_of_new_forced_pods(&response.status, old_status) {
        response.requeue_within(0);
    }
    if old_status.is_condition_true("Suspended") {
        let list = workload::kept_while_used(job.name, observed.has_workload, pods).into_iter().collect();
        response.children = Children::Exactly { list, removes_pods: true };
    } else {
        response.requeue_within(0);
    }
    Ok(response.done())
}
