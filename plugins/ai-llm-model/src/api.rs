//! The API types of `LLMModel` of `ai.example.com`, from which its CRD is made. They hold no behaviour.

use llm_serving::api::{ModelFields, ServingFields, ServingStatus};
use pilothouse_pods::api::Resources;
use pilothouse_pods::transition::StatusCondition;
use pilothouse_sdk::Object;
use serde::{Deserialize, Serialize};

/// An `LLMModel` as the API serves it.
pub type LlmModel = Object<LlmModelSpec, LlmModelStatus>;

/// A model and how it is served.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LlmModelSpec {
    /// The name of the model: what the engine loads, unless `modelPath` says where it is, and what clients ask for.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 253), regex(pattern = r"^\S+$")))]
    pub model_name: String,
    /// How many Pods serve it. Default: 1.
    #[cfg_attr(feature = "crd", schemars(range(min = 0, max = 10000)))]
    #[serde(default = "one")]
    pub replicas: i32,
    /// How many GPUs each Pod has; the model is spread over them. Default: 1 if a type or size of GPUs is given, else none.
    #[cfg_attr(feature = "crd", schemars(range(max = 64)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_count: Option<u32>,
    /// Other compute resources of each Pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// What the model is.
    #[serde(flatten)]
    pub model: ModelFields,
    /// How it is served.
    #[serde(flatten)]
    pub serving: ServingFields,
}

/// The status as it was last written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct LlmModelStatus {
    /// What the plugin reported.
    #[serde(flatten)]
    pub reported: ReportedStatus,
    /// The conditions. Only the host writes them.
    pub conditions: Vec<StatusCondition>,
}

/// What the plugin reports.
pub type ReportedStatus = ServingStatus;

fn one() -> i32 {
    1
}
