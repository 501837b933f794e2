//! Who refers to a model, and whether anybody could serve it. LLMDeployments are asked themselves: whatever else becomes of one, it
//! refers to the model. Only that field of them is looked up, for their status changes with every Pod.

use crate::api::{LlmModel, LlmModelStatus};
use crate::server::{identity, server_spec};
use llm_serving::api::ServingFields;
use llm_serving::config::Config;
use llm_serving::pod_template::pod_template;
use llm_serving::spec_error::SpecError;
use llm_serving::validate::checked;
use pilothouse_pods::volumes::Volumes;
use pilothouse_sdk::{Condition, Error, Kind, Request, Response, lookup};
use serde::Deserialize;

/// The most names in the status. One more LLMDeployment then changes no status, and wakes none of the others.
const MAX_NAMES: usize = 100;

/// An LLMDeployment: its name, and the model that it refers to.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Referrer {
    metadata: Metadata,
    spec: Spec,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Metadata {
    name: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    model_ref: String,
}

impl Kind for Referrer {
    const API_VERSION: &'static str = "llm.example.com/v1alpha1";
    const KIND: &'static str = "LLMDeployment";
    const FIELDS: &'static [&'static str] = &["/metadata/name", "/spec/modelRef"];
}

/// The status of an `LLMModel`.
///
/// # Errors
/// A lookup fails, or the configuration cannot be read.
pub fn reconcile(request: &Request<LlmModel>) -> Result<Response, Error> {
    let object = &request.object;
    let config = request.config::<Config>()?;
    let names = referrers(object.name())?;
    let message = if names.is_empty() { "no LLMDeployment refers to it" } else { "" };
    let status = LlmModelStatus {
        has_more_references: names.len() > MAX_NAMES,
        referenced_by: names.into_iter().take(MAX_NAMES).collect(),
    };
    let response = match servable(object, &config) {
        Ok(()) => Response::done().condition(Condition::when("Ready", true, "Described", message)),
        Err(error) => Response::invalid(error.to_string()),
    };
    Ok(response.no_children().status(status))
}

/// Whether a server can be made of a model: a mistake in it would stop every LLMDeployment that refers to it.
fn servable(model: &LlmModel, config: &Config) -> Result<(), SpecError> {
    let serving = ServingFields::default();
    let spec = server_spec(identity(model.name(), model.namespace()), 1, &model.spec, &serving);
    pod_template(&checked(spec, config)?, Volumes::default()).map(drop)
}

/// The names of the LLMDeployments that refer to a model, in order.
fn referrers(model: &str) -> Result<Vec<String>, Error> {
    let all = match lookup::select::<Referrer>(None, "") {
        Ok(all) => all,
        // Nobody can refer to it where the kind is not installed.
        Err(Error::KindNotInstalled(_)) => Vec::new(),
        Err(error) => return Err(error),
    };
    let of_model = all.into_iter().filter(|referrer| referrer.spec.model_ref == model);
    Ok(of_model.map(|referrer| referrer.metadata.name).collect())
}
