//! From an `LLMDeployment` and its model to the response. What a server consists of is in the shared library.

use crate::api::{LlmDeployment, ReportedStatus};
use crate::model_ref::{self, ANNOUNCED, MODEL_NOT_FOUND, MODEL_RESOLVED};
use llm_model::server::{identity, server_spec};
use llm_serving::config::Config;
use llm_serving::deployment;
use llm_serving::own_pods::Between;
use llm_serving::respond::{Observed, Parts, counted, refused, respond, unchanged};
use llm_serving::surroundings::Targets;
use llm_serving::validate::checked;
use pilothouse_pods::name::is_object_name;
use pilothouse_pods::workload::ObservedDeployment;
use pilothouse_sdk::{Condition, Error, Request, Response};

/// How often a missing model is looked for again, in seconds. The host calls earlier when it appears.
const RECHECK_SECONDS: u32 = 300;

/// The desired children, the status and the conditions of an `LLMDeployment`.
///
/// # Errors
/// A lookup fails, or an object cannot be read.
pub fn reconcile(request: &Request<LlmDeployment>) -> Result<Response, Error> {
    let object = &request.object;
    let config = request.config::<Config>()?;
    let identity = identity(object.name(), object.namespace());
    let workload = request.child::<ObservedDeployment>(&identity.workload)?.unwrap_or_default().0;
    let old_status = object.status.as_ref();
    let observed = Observed {
        workload: &workload,
        between: Between::ReplicaSets,
        awaited: None,
        overdue: None,
        targets: Targets::of(request, &identity.workload),
        desired: if object.spec.serving.suspend.unwrap_or_default() { 0 } else { object.spec.replicas },
        old_conditions: old_status.map(|status| status.conditions.as_slice()).unwrap_or_default(),
    };
    let name = object.spec.model_ref.as_str();
    if !is_object_name(name) {
        let message = format!("spec.modelRef '{name}' is not the name of an object; name an LLMModel");
        return Ok(refused(message, &workload, old(object, &observed)));
    }
    let Some(model) = model_ref::find(name)? else {
        return Ok(without_model(object, &observed));
    };
    let server = match checked(server_spec(identity, object.spec.replicas, &model.spec, &object.spec.serving), &config)
    {
        Ok(server) => server,
        Err(error) => {
            let response = refused(error.to_string(), &workload, old(object, &observed));
            return Ok(response.condition(model_ref::resolved(&model)));
        }
    };
    let parts = Parts {
        children: deployment::children(&server),
        missing_kinds: Vec::new(),
        conditions: vec![model_ref::resolved(&model)],
        announced: &ANNOUNCED,
    };
    let observed_model = Some(model_ref::observed(&model));
    respond(&server, &observed, parts, |serving| ReportedStatus { serving, observed_model })
}

/// The response while the model is missing: all children stay as they are, and so does what the status says of the model.
fn without_model(object: &LlmDeployment, observed: &Observed<'_>) -> Response {
    let message = model_ref::not_found(&object.spec.model_ref, object.namespace());
    let condition = Condition::when(MODEL_RESOLVED, false, MODEL_NOT_FOUND, &message);
    let response = Response::wait(MODEL_NOT_FOUND, message, RECHECK_SECONDS).status(old(object, observed));
    unchanged(response, observed, vec![condition], &ANNOUNCED)
}

/// The status as it was, with what there is now.
fn old(object: &LlmDeployment, observed: &Observed<'_>) -> ReportedStatus {
    let mut status = object.status.as_ref().map(|status| status.reported.clone()).unwrap_or_default();
    status.serving = counted(status.serving, observed.workload, observed.targets);
    status
}
