//! The API types of `LLMModel` of `llm.example.com`, from which its CRD is made. They hold no behaviour.

use llm_serving::api::ModelFields;
use pilothouse_sdk::{Kind, Object};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// An `LLMModel` as the API serves it.
pub type LlmModel = Object<LlmModelSpec>;

/// What a model is, and what each of its servers needs.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LlmModelSpec {
    /// The name of the model.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 253), regex(pattern = r"^\S+$")))]
    pub model_name: String,
    /// The compute resources of each server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<ModelResources>,
    /// How many GPUs each server has. Default: 1 if a type or size of GPUs is given, else none.
    #[cfg_attr(feature = "crd", schemars(range(max = 64)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_count: Option<u32>,
    /// What the model is.
    #[serde(flatten)]
    pub model: ModelFields,
}

/// Compute resources: what is reserved for a server, and of memory also the most that it may use.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ModelResources {
    /// The processors that are reserved.
    #[cfg_attr(feature = "crd", schemars(schema_with = "pilothouse_pods::api::schema::quantity"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cpu: Option<Value>,
    /// The memory that is reserved, and the most that may be used.
    #[cfg_attr(feature = "crd", schemars(schema_with = "pilothouse_pods::api::schema::quantity"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<Value>,
}

/// What the plugin reports. The host adds `observedGeneration` and `conditions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct LlmModelStatus {
    /// The names of the LLMDeployments that refer to the model: the first 100 in order of their names.
    pub referenced_by: Vec<String>,
    /// Whether there are more of them.
    pub has_more_references: bool,
}

impl Kind for LlmModelSpec {
    const API_VERSION: &'static str = "llm.example.com/v1alpha1";
    const KIND: &'static str = "LLMModel";
    // Those who serve a model look it up. What its status says is nothing to them.
    const FIELDS: &'static [&'static str] = &["/spec"];
}
