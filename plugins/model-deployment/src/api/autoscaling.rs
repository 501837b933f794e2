//! Who decides how many Pods there are, and within which bounds.

#[cfg(feature = "crd")]
use pilothouse_pods::api::schema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Who decides how many Pods there are, and within which bounds.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Autoscaling {
    /// Who decides. Default: a HorizontalPodAutoscaler.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autoscaler: Option<Autoscaler>,
    /// How many Pods there are at least. Default: as many as `replicas` and `sla.minThroughput` need. 0 is for KEDA, with a trigger of
    /// yours, and for an external autoscaler that scales from 0.
    #[cfg_attr(feature = "crd", schemars(range(min = 0, max = 10000)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_replicas: Option<i32>,
    /// How many Pods there are at most. Default: twice as many as at least.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 10000)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_replicas: Option<i32>,
    /// How many requests may wait for each Pod. Default: 5.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 100000)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_length: Option<u32>,
    /// How many Pods are added at most in the time that one takes to start. Default: 2.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 10000)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_up_pods: Option<i32>,
    /// The seconds of that time. Default: `startupTimeoutSeconds`, at most 1800.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 1800)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_up_period_seconds: Option<u32>,
    /// For how many seconds fewer Pods must do before one is removed. Default: 300.
    #[cfg_attr(feature = "crd", schemars(range(min = 0, max = 3600)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scale_down_stabilization_seconds: Option<u32>,
    /// The labels by which the metrics of these servers are found. Default: `service`, with the name of the Service.
    #[cfg_attr(feature = "crd", schemars(schema_with = "schema::labels"))]
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metric_labels: BTreeMap<String, String>,
    /// What KEDA needs to know, if it decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keda: Option<Keda>,
}

/// What KEDA needs to know.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Keda {
    /// The address of the Prometheus that has the metrics of the servers.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 1024), regex(pattern = r"^https?://\S+$")))]
    pub server_address: String,
    /// How often KEDA asks while there are no Pods, in seconds. Default: KEDA's own.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 3600)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub polling_interval_seconds: Option<u32>,
    /// For how many seconds no trigger is active before the last Pod is removed. Default: KEDA's own.
    #[cfg_attr(feature = "crd", schemars(range(min = 0, max = 86400)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cooldown_seconds: Option<u32>,
    /// Triggers of yours, as in a ScaledObject. The engine's metrics vanish with its Pods, so the first Pod needs another one.
    #[cfg_attr(feature = "crd", schemars(schema_with = "schema::free_form_list"))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<Value>,
}

/// Who decides how many Pods there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Autoscaler {
    /// `replicas`, and what `sla.minThroughput` needs.
    None,
    /// A HorizontalPodAutoscaler, by latency and queue.
    Hpa,
    /// A ScaledObject of KEDA, by queries of a Prometheus.
    Keda,
    /// Somebody else, who scales the StatefulSet or LeaderWorkerSet: its number of Pods is not reverted, and `replicas` is only how many
    /// there are at first. For one that scales the ModelDeployment itself, take `none`.
    External,
}
