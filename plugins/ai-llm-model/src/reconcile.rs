//! From an `LLMModel` to the response: which server it asks for. What a server consists of is in the shared library.

use crate::api::LlmModel;
use llm_serving::config::Config;
use llm_serving::deployment;
use llm_serving::engine::DefaultEngine;
use llm_serving::own_pods::Between;
use llm_serving::parallelism::Spread;
use llm_serving::respond::{Observed, Parts, counted, refused, respond};
use llm_serving::server_spec::{Identity, ServerSpec};
use llm_serving::surroundings::Targets;
use llm_serving::validate::checked;
use pilothouse_pods::name::{MAX_LABEL, dns_label};
use pilothouse_pods::workload::ObservedDeployment;
use pilothouse_sdk::{Error, Request, Response};

/// The desired children, the status and the conditions of an `LLMModel`.
///
/// # Errors
/// A lookup fails, or an object cannot be read.
pub fn reconcile(request: &Request<LlmModel>) -> Result<Response, Error> {
    let object = &request.object;
    let config = request.config::<Config>()?;
    let identity = identity(object);
    let workload = request.child::<ObservedDeployment>(&identity.workload)?.unwrap_or_default().0;
    let targets = Targets::of(request, &identity.workload);
    let old_status = object.status.as_ref();
    let server = match checked(server_spec(object, identity), &config) {
        Ok(server) => server,
        Err(error) => {
            let old = old_status.map(|status| status.reported.clone()).unwrap_or_default();
            return Ok(refused(error.to_string(), &workload, counted(old, &workload, targets)));
        }
    };
    let observed = Observed {
        workload: &workload,
        between: Between::ReplicaSets,
        awaited: None,
        overdue: None,
        targets,
        desired: server.desired_replicas(),
        old_conditions: old_status.map(|status| status.conditions.as_slice()).unwrap_or_default(),
    };
    let parts = Parts {
        children: deployment::children(&server),
        missing_kinds: Vec::new(),
        conditions: Vec::new(),
        announced: &[],
    };
    respond(&server, &observed, parts, |status| status)
}

fn identity(object: &LlmModel) -> Identity<'_> {
    Identity {
        object: object.name(),
        namespace: object.namespace(),
        component: "llmmodel",
        workload: dns_label(&format!("llmmodel-{}", object.name()), MAX_LABEL),
    }
}

fn server_spec<'a>(object: &'a LlmModel, identity: Identity<'a>) -> ServerSpec<'a> {
    let spec = &object.spec;
    ServerSpec {
        identity,
        model_name: &spec.model_name,
        replicas: spec.replicas,
        gpu_count: spec.gpu_count,
        gpu_count_field: "gpuCount",
        spread: Spread::OneNode,
        resources: spec.resources.clone().unwrap_or_default(),
        model: &spec.model,
        serving: &spec.serving,
        default_engine: DefaultEngine::Vllm,
        default_port: None,
    }
}
