//! From an `LLMDeployment` and its model to the response. What a server consists of is in the shared library.

use crate::api::{LlmDeployment, ReportedStatus};
use crate::model_ref::{self, ANNOUNCED, MODEL_NOT_FOUND, MODEL_RESOLVED};
use llm_model::api::LlmModel;
use llm_serving::config::Config;
use llm_serving::deployment;
use llm_serving::engine::DefaultEngine;
use llm_serving::parallelism::Spread;
use llm_serving::respond::{Observed, Parts, respond, unchanged};
use llm_serving::server_spec::{Identity, ServerSpec};
use llm_serving::validate::checked;
use pilothouse_pods::name::{MAX_LABEL, dns_label, label_value};
use pilothouse_pods::workload::ObservedDeployment;
use pilothouse_sdk::{Condition, Error, Request, Response};

/// The port of an LLMDeployment that names none.
const DEFAULT_PORT: u32 = 8080;

/// The label of the Service with the name of the model, by which the model's plugin finds who serves it.
const MODEL_REF: &str = "llm.example.com/model-ref";

/// How often a missing model is looked for again, in seconds. The host calls earlier when it appears.
const RECHECK_SECONDS: u32 = 300;

/// The desired children, the status and the conditions of an `LLMDeployment`.
///
/// # Errors
/// A lookup fails, or an object cannot be read.
pub fn reconcile(request: &Request<LlmDeployment>) -> Result<Response, Error> {
    let object = &request.object;
    let config = request.config::<Config>()?;
    let identity = identity(object);
    let workload = request.child::<ObservedDeployment>(&identity.workload)?.unwrap_or_default();
    let old_status = object.status.as_ref();
    let observed = Observed {
        workload: &workload.0,
        desired: if object.spec.serving.suspend.unwrap_or_default() { 0 } else { object.spec.replicas },
        old_conditions: old_status.map(|status| status.conditions.as_slice()).unwrap_or_default(),
    };
    let name = object.spec.model_ref.as_str();
    if !model_ref::is_name(name) {
        return Ok(Response::invalid(format!("spec.modelRef '{name}' is not the name of an object; name an LLMModel")));
    }
    let Some(model) = model_ref::find(name)? else {
        return Ok(without_model(object, &observed));
    };
    let server = match checked(server_spec(object, &model, identity), &config) {
        Ok(server) => server,
        Err(error) => return Ok(Response::invalid(error.to_string()).condition(model_ref::resolved(&model))),
    };
    let parts = Parts {
        children: deployment::children(&server, &[(MODEL_REF, label_value(name))]),
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
    let mut status = object.status.as_ref().map(|status| status.reported.clone()).unwrap_or_default();
    let counts = &observed.workload.status;
    (status.serving.replicas, status.serving.ready_replicas) = (counts.replicas, counts.ready_replicas);
    let response = Response::wait(MODEL_NOT_FOUND, message, RECHECK_SECONDS).status(status);
    unchanged(response, observed, vec![condition], &ANNOUNCED)
}

fn identity(object: &LlmDeployment) -> Identity<'_> {
    Identity {
        object: object.name(),
        namespace: object.namespace(),
        component: "llmdeployment",
        workload: dns_label(object.name(), MAX_LABEL),
    }
}

fn server_spec<'a>(object: &'a LlmDeployment, model: &'a LlmModel, identity: Identity<'a>) -> ServerSpec<'a> {
    ServerSpec {
        identity,
        model_name: &model.spec.model_name,
        replicas: object.spec.replicas,
        gpu_count: model.spec.gpu_count,
        gpu_count_field: "gpuCount",
        spread: Spread::OneNode,
        resources: model_ref::resources(model.spec.resources.as_ref()),
        model: &model.spec.model,
        serving: &object.spec.serving,
        default_engine: DefaultEngine::ByImage,
        default_port: Some(DEFAULT_PORT),
    }
}
