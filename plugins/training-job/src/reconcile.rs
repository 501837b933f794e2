//! The entry point: chooses how to handle a job by its stage in life. Each stage has a file of its own.

use crate::active::ActiveJob;
use crate::api::{TrainingJob, TrainingJobStatus};
use crate::children::workload;
use crate::conditions::Conditions;
use crate::job::Job;
use crate::job_response::JobResponse;
use crate::time::Time;
use crate::validate::validate;
use crate::validation_error::ValidationError;
use crate::{finished, suspended};
use pilothouse_sdk::{Error, Request, Response};

/// The desired children, the status and the conditions of a `TrainingJob`.
///
/// # Errors
/// A child cannot be read, or a lookup fails.
pub fn reconcile(request: &Request<TrainingJob>) -> Result<Response, Error> {
    let job = Job::of(&request.object);
    let empty = TrainingJobStatus::default();
    let old_status = request.object.status.as_ref().unwrap_or(&empty);
    let (pods, config_maps) = (request.children()?, request.children()?);
    // A finished job stays finished, also where its spec is made invalid or suspended later.
    if old_status.is_finished() {
        return Ok(finished::respond(&job, old_status, &pods, &config_maps));
    }
    if let Err(error) = validate(&job) {
        return Ok(refuse(&job, old_status, &error));
    }
    if job.is_suspended() {
        return suspended::respond(&job, old_status);
    }
    let now = Time::now()?;
    let refused = request.refused();
    let quota = workload::quota(&job)?;
    ActiveJob { job: &job, old_status, pods: &pods, config_maps: &config_maps, refused, quota, now }.respond()
}

/// The response for an invalid spec. Pods that run are left alone until the spec is corrected.
fn refuse(job: &Job<'_>, old_status: &TrainingJobStatus, error: &ValidationError) -> Response {
    let status = JobResponse::new(job, old_status).status;
    let response = Response::invalid(error.to_string()).status(status);
    // Not the conditions of `JobResponse::new`: a job that was never valid does not get the condition `Created`.
    Conditions::from_status(old_status).into_iter().fold(response, Response::condition)
}
