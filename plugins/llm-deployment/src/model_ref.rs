//! The model that an LLMDeployment refers to. It only reads; the model is its user's.

use crate::api::ObservedModel;
use llm_model::api::LlmModel;
use pilothouse_pods::transition::Announced;
use pilothouse_sdk::{Condition, Error, lookup};

/// The condition that says whether the model exists.
pub const MODEL_RESOLVED: &str = "ModelResolved";

/// The reason while it does not.
pub const MODEL_NOT_FOUND: &str = "ModelNotFound";

/// The Events about it: one when the model is missing, and one when it is there again.
pub const ANNOUNCED: [Announced<'_>; 1] =
    [Announced { condition_type: MODEL_RESOLVED, on_true: Some("ModelResolved"), on_false: None }];

/// The model of this name in the namespace of the LLMDeployment.
///
/// # Errors
/// The lookup fails, or the model cannot be read.
pub fn find(name: &str) -> Result<Option<LlmModel>, Error> {
    lookup::get::<LlmModel>(None, name)
}

/// The condition about a model that is there.
pub fn resolved(model: &LlmModel) -> Condition {
    Condition::when(MODEL_RESOLVED, true, "ModelFound", format!("the LLMModel '{}' is there", model.name()))
}

/// What is said of a model that is missing.
pub fn not_found(name: &str, namespace: &str) -> String {
    format!(
        "spec.modelRef names the LLMModel '{name}' of llm.example.com, which namespace '{namespace}' does not have; create it. Until then \
         everything stays as it is"
    )
}

/// Which state of a model a server is made of.
pub fn observed(model: &LlmModel) -> ObservedModel {
    let metadata = &model.metadata;
    ObservedModel { name: metadata.name.clone(), uid: metadata.uid.clone(), generation: metadata.generation }
}
