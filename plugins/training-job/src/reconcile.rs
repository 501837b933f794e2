//! Which way a job goes: refused, ended, suspended or running. Each way has its own file.

use crate::TrainingJob;
use crate::answer::Answer;
use crate::api::TrainingJobStatus;
use crate::conditions::Conditions;
use crate::job::Job;
use crate::running::Running;
use crate::time::Time;
use crate::validate::validate;
use crate::{finished, suspended};
use pilothouse_sdk::{Error, Request, Response};

/// Says what shall exist for a `TrainingJob`, and how it is.
///
/// # Errors
/// A child cannot be read, or something cannot be looked up.
pub fn reconcile(request: &Request<TrainingJob>) -> Result<Response, Error> {
    let job = Job::of(&request.object);
    let none = TrainingJobStatus::default();
    let memory = request.object.status.as_ref().unwrap_or(&none);
    let (pods, config_maps) = (request.children()?, request.children()?);
    if memory.is_finished() {
        return Ok(finished::respond(&job, memory, &pods, &config_maps));
    }
    if let Err(problem) = validate(&job) {
        return Ok(refuse(&job, memory, &problem));
    }
    if job.is_suspended() {
        return Ok(suspended::respond(&job, memory));
    }
    let now = Time::now()?;
    Running { job: &job, memory, pods: &pods, config_maps: &config_maps, now }.respond()
}

/// A job that cannot be right as it is: what runs stays as it is until the spec is put right.
fn refuse(job: &Job<'_>, memory: &TrainingJobStatus, problem: &str) -> Response {
    let response = Response::invalid(problem).status(Answer::new(job, memory).status);
    Conditions::carried(memory).into_iter().fold(response, Response::condition)
}
