//! The API types of `LLMDeployment`, from which its CRD is made. They hold no behaviour.

use llm_serving::api::{ServingFields, ServingStatus};
use pilothouse_pods::transition::StatusCondition;
use pilothouse_sdk::Object;
use serde::{Deserialize, Serialize};

/// An `LLMDeployment` as the API serves it.
pub type LlmDeployment = Object<LlmDeploymentSpec, LlmDeploymentStatus>;

/// Which model is served, and how.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct LlmDeploymentSpec {
    /// The name of an LLMModel in the same namespace.
    #[cfg_attr(
        feature = "crd",
        schemars(length(min = 1, max = 253), regex(pattern = r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$"))
    )]
    pub model_ref: String,
    /// How many Pods serve the model.
    #[cfg_attr(feature = "crd", schemars(range(min = 0, max = 10000)))]
    pub replicas: i32,
    /// How it is served.
    #[serde(flatten)]
    pub serving: ServingFields,
}

/// The status as it was last written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct LlmDeploymentStatus {
    /// What the plugin reported.
    #[serde(flatten)]
    pub reported: ReportedStatus,
    /// The conditions. Only the host writes them.
    pub conditions: Vec<StatusCondition>,
}

/// What the plugin reports. The host adds `observedGeneration` and `conditions`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ReportedStatus {
    /// How the server is.
    #[serde(flatten)]
    pub serving: ServingStatus,
    /// The model as it was when the server was made of it last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_model: Option<ObservedModel>,
}

/// Which state of an LLMModel a server was made of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ObservedModel {
    /// Its name.
    pub name: String,
    /// Its UID.
    pub uid: String,
    /// Its generation.
    pub generation: i64,
}
