//! The status of a `ModelDeployment`.

use super::Autoscaler;
use llm_serving::api::ServingStatus;
use pilothouse_pods::transition::StatusCondition;
use serde::{Deserialize, Serialize};

/// The status as it was last written.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ModelDeploymentStatus {
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
    /// How the servers are.
    #[serde(flatten)]
    pub serving: ServingStatus,
    /// How many replicas the SLA needs, as far as that can be computed; 0 while all Pods are suspended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needed_replicas: Option<i32>,
    /// Who decides how many replicas there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autoscaler: Option<Autoscaler>,
    /// How many replicas an autoscaler left that was removed. They stay until `replicas` is changed, or the workload is scaled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_replicas: Option<i32>,
    /// How far the rollout of this spec is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// The latency that the autoscaler observed last, such as `87ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_latency: Option<String>,
}

/// How far a rollout is, and since when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Progress {
    /// The generation of the object that is rolled out.
    pub generation: i64,
    /// What has been reached, such as `1 of 2 replicas ready`; `complete` once all was.
    pub summary: String,
    /// Since when.
    #[cfg_attr(feature = "crd", schemars(extend("format" = "date-time")))]
    pub last_update_time: String,
}
