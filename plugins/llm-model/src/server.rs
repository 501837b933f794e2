//! What a server is made of that serves a model: shared by the plugin that makes such servers and the one that checks whether any can be
//! made. It reads no cluster.

use crate::api::{LlmModelSpec, ModelResources};
use llm_serving::api::ServingFields;
use llm_serving::engine::DefaultEngine;
use llm_serving::parallelism::Spread;
use llm_serving::server_spec::{Identity, ServerSpec};
use pilothouse_pods::api::Resources;
use pilothouse_pods::name::{MAX_LABEL, dns_label};
use serde_json::Value;
use std::collections::BTreeMap;

/// The port of an LLMDeployment that names none.
const DEFAULT_PORT: u32 = 8080;

/// The server of an LLMDeployment of this name.
pub fn identity<'a>(name: &'a str, namespace: &'a str) -> Identity<'a> {
    Identity { object: name, namespace, component: "llmdeployment", workload: dns_label(name, MAX_LABEL) }
}

/// What the server of a model is made of.
pub fn server_spec<'a>(
    identity: Identity<'a>,
    replicas: i32,
    model: &'a LlmModelSpec,
    serving: &'a ServingFields,
) -> ServerSpec<'a> {
    ServerSpec {
        identity,
        model_name: &model.model_name,
        replicas,
        gpu_count: model.gpu_count,
        gpu_count_field: "gpuCount",
        spread: Spread::OneNode,
        resources: resources(model.resources.as_ref()),
        model: &model.model,
        serving,
        default_engine: DefaultEngine::ByImage,
        default_port: Some(DEFAULT_PORT),
    }
}

/// The compute resources of each Pod: both are reserved, and memory is also limited. Processors are not: a limit would only slow a
/// server down that has some to spare.
fn resources(given: Option<&ModelResources>) -> Resources {
    let Some(ModelResources { cpu, memory }) = given else { return Resources::default() };
    let quantities = |of: &[(&str, &Option<Value>)]| -> BTreeMap<String, Value> {
        of.iter().filter_map(|(name, value)| Some(((*name).to_owned(), (*value).clone()?))).collect()
    };
    Resources { requests: quantities(&[("cpu", cpu), ("memory", memory)]), limits: quantities(&[("memory", memory)]) }
}
