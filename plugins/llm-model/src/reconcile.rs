//! Who serves a model. LLMDeployments are found by their Services: a Service is made when its LLMDeployment has found the model, and
//! changes as seldom as that; the LLMDeployment itself changes its status with every Pod.

use crate::api::{LlmModel, LlmModelStatus};
use llm_serving::config::Config;
use llm_serving::engine::DefaultEngine;
use pilothouse_pods::name::label_value;
use pilothouse_sdk::{Condition, Error, Kind, Request, Response, lookup};
use serde::Deserialize;
use std::collections::BTreeSet;

/// The label of a Service with the name of the model that its LLMDeployment serves.
const MODEL_REF: &str = "llm.example.com/model-ref";

/// The most names in the status. One more LLMDeployment then changes no status, and wakes none of the others.
const MAX_NAMES: usize = 100;

/// A Service: the field that says whose it is.
#[derive(Debug, Default, Deserialize)]
struct Service {
    metadata: Metadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    owner_references: Vec<Owner>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Owner {
    kind: String,
    name: String,
}

impl Kind for Service {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Service";
    const FIELDS: &'static [&'static str] = &["/metadata/ownerReferences"];
}

/// The status of an `LLMModel`.
///
/// # Errors
/// A lookup fails, or the configuration cannot be read.
pub fn reconcile(request: &Request<LlmModel>) -> Result<Response, Error> {
    let object = &request.object;
    let config = request.config::<Config>()?;
    let model = &object.spec.model;
    if let Err(error) = config.engine(model.engine.as_deref(), model.image.as_deref(), DefaultEngine::ByImage) {
        return Ok(Response::invalid(error.to_string()));
    }
    let names = references(object.name())?;
    let message = match names.len() {
        0 => "no LLMDeployment serves it".to_owned(),
        _ => String::new(),
    };
    let status = LlmModelStatus {
        has_more_references: names.len() > MAX_NAMES,
        referenced_by: names.into_iter().take(MAX_NAMES).collect(),
    };
    Ok(Response::done().no_children().status(status).condition(Condition::when("Ready", true, "Described", message)))
}

/// The names of the LLMDeployments that serve a model, in order.
fn references(model: &str) -> Result<BTreeSet<String>, Error> {
    let services = lookup::select::<Service>(None, &format!("{MODEL_REF}={}", label_value(model)))?;
    let owners = services.into_iter().flat_map(|service| service.metadata.owner_references);
    Ok(owners.filter(|owner| owner.kind == "LLMDeployment").map(|owner| owner.name).collect())
}
