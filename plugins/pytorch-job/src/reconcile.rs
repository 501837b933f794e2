//! The entry point: makes a job of the object, lets the machine decide about it, and translates what it says.

use crate::answer::Answer;
use crate::api::PyTorchJob;
use crate::config::Config;
use crate::kind::PyTorchJobKind;
use crate::state;
use crate::translation::training_job;
use pilothouse_sdk::{Error, Request, Response};
use training_job::{Job, Observed, reconcile_job};

/// The desired children, the status and the conditions of a `PyTorchJob`.
///
/// # Errors
/// A child or the configuration cannot be read, or a lookup fails.
pub fn reconcile(request: &Request<PyTorchJob>) -> Result<Response, Error> {
    let (object, config) = (&request.object, request.config::<Config>()?);
    let kind = PyTorchJobKind { spec: &object.spec, config: &config };
    let as_training_job = training_job(object, &config);
    let job = Job::of(&as_training_job, &kind);
    let state = state::observed(request, object.name())?;
    let old_status = state::read(state.as_ref(), object.status.as_ref());
    let observed = Observed {
        pods: &request.children()?,
        config_maps: &[],
        has_workload: false,
        refused: request.refused(),
        needs: &[state::referent(object.name())],
        children: request,
    };
    let response = reconcile_job(&job, &old_status, observed)?;
    let reported = object.status.as_ref().and_then(|status| status.last_reconcile_time.as_deref());
    Answer { request, job: &job, kind: &kind, state: state.as_ref(), reported }.translate(response)
}
