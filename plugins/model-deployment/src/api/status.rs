//! The status of a `ModelDeployment`.

use llm_serving::api::ServingStatus;
use pilothouse_pods::transition::StatusCondition;
use serde::{Deserialize, Serialize};

/// The status as it was last written: what the plugin reads of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelDeploymentStatus {
    /// How many replicas were needed.
    pub needed_replicas: Option<i32>,
    /// How many an autoscaler left.
    pub kept_replicas: Option<i32>,
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
    /// How many replicas the SLA needs, as far as that can be computed.
    pub needed_replicas: i32,
    /// How many replicas an autoscaler left that was removed. They stay until `replicas` is changed, or the workload is scaled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kept_replicas: Option<i32>,
    /// The latency that the autoscaler observed last, such as `87ms`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_latency: Option<String>,
}
