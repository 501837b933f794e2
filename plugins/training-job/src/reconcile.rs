//! The entry point: chooses how to handle a job by its stage in life. Each stage has a file of its own.

use crate::active::ActiveJob;
use crate::api::{TrainingJob, TrainingJobStatus};
use crate::children::workload::{self, Workload};
use crate::conditions::Conditions;
use crate::job::Job;
use crate::job_response::JobResponse;
use crate::observed::Observed;
use crate::outcome::success;
use crate::replicas::Replicas;
use crate::training_job_kind::TrainingJobKind;
use crate::{finished, suspended};
use pilothouse_pods::observed_pod::ObservedPod;
use pilothouse_pods::time::Time;
use pilothouse_sdk::{Error, Request, Response};

/// The desired children, the status and the conditions of a `TrainingJob`.
///
/// # Errors
/// A child cannot be read, or a lookup fails.
pub fn reconcile(request: &Request<TrainingJob>) -> Result<Response, Error> {
    let empty = TrainingJobStatus::default();
    let old_status = request.object.status.as_ref().unwrap_or(&empty);
    let observed = Observed {
        pods: &request.children()?,
        config_maps: &request.children()?,
        has_workload: request.names::<Workload>().next().is_some(),
        refused: request.refused(),
        needs: &[],
        children: request,
    };
    reconcile_job(&Job::of(&request.object, &TrainingJobKind), old_status, observed)
}

/// The desired children, the status and the conditions of a job of any kind.
///
/// # Errors
/// A lookup fails.
pub fn reconcile_job(job: &Job<'_>, old_status: &TrainingJobStatus, observed: Observed<'_>) -> Result<Response, Error> {
    // A finished job stays finished, also where its spec is made invalid or suspended later.
    if old_status.is_finished() {
        return finished::respond(job, old_status, observed);
    }
    if let Err(error) = job.kind.validate(job) {
        return Ok(refuse(job, old_status, observed.pods, &error.to_string()));
    }
    if job.is_suspended() && !has_succeeded(job, old_status, observed.pods) {
        return suspended::respond(job, old_status, observed);
    }
    let now = Time::now()?;
    let quota = workload::quota(job, observed.has_workload, !observed.pods.is_empty())?;
    ActiveJob { job, old_status, observed, quota, now }.respond()
}

/// Whether a job had succeeded before its suspension was seen: it does not train again when it is resumed. Once its status says that it is
/// suspended, its Pods are about to go, and no longer count.
fn has_succeeded(job: &Job<'_>, old_status: &TrainingJobStatus, pods: &[ObservedPod]) -> bool {
    !pods.is_empty() && success(job, &Replicas::observe(job, pods, old_status)).is_some()
}

/// The response for an invalid spec. Pods that run are left alone until the spec is corrected.
fn refuse(job: &Job<'_>, old_status: &TrainingJobStatus, pods: &[ObservedPod], error: &str) -> Response {
    let status = finished::with_present_pods(&JobResponse::new(job, old_status, pods).status, pods);
    let response = Response::invalid(error).status(status);
    // Not the conditions of `JobResponse::new`: a job that was never valid does not get the condition `Created`.
    Conditions::from_status(old_status).into_iter().fold(response, Response::condition)
}
