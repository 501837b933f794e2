//! The API types of `ModelDeployment`, from which its CRD is made. They hold no behaviour.

mod autoscaling;
mod sla;
mod status;

pub use autoscaling::{Autoscaler, Autoscaling, Keda};
pub use sla::{LatencyMetric, Sla};
pub use status::{ModelDeploymentStatus, Progress, ReportedStatus};

use llm_serving::api::{ModelFields, ServingFields};
use pilothouse_pods::api::Resources;
use pilothouse_sdk::Object;
use serde::{Deserialize, Serialize};

/// A `ModelDeployment` as the API serves it.
pub type ModelDeployment = Object<ModelDeploymentSpec, ModelDeploymentStatus>;

/// A model, and within which latency it is served.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct ModelDeploymentSpec {
    /// The name of the model: what the engine loads, unless `modelPath` says where it is, and what clients ask for.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 253), regex(pattern = r"^\S+$")))]
    pub model: String,
    /// How many servers there are: Pods, or groups of Pods on several nodes. With autoscaling, how many at least. Default: 1.
    #[cfg_attr(feature = "crd", schemars(range(min = 0, max = 10000)))]
    #[serde(default = "one")]
    pub replicas: i32,
    /// What the servers shall achieve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sla: Option<Sla>,
    /// Who decides how many Pods there are. Default: a HorizontalPodAutoscaler if `sla.maxLatency` is given, else `replicas`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autoscaling: Option<Autoscaling>,
    /// Over how many GPUs each server, or each stage of one, spreads the model. Default: 1 if a type or size of GPUs is given, else none.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 64)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tensor_parallel_size: Option<u32>,
    /// Into how many stages the layers of the model are cut, each with as many GPUs. Default: 1.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 64)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pipeline_parallel_size: Option<u32>,
    /// How many GPUs a node has. A server that needs more is a group of Pods on several nodes, which needs the kind LeaderWorkerSet.
    /// Default: that of the plugin's configuration, or else 8.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 64)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus_per_node: Option<u32>,
    /// Other compute resources of each Pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// What the model is.
    #[serde(flatten)]
    pub model_fields: ModelFields,
    /// How it is served.
    #[serde(flatten)]
    pub serving: ServingFields,
}

fn one() -> i32 {
    1
}
