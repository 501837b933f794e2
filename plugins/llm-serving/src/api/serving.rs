//! The fields that say how a model is served: rollouts, probes, what stands around the Pods.

use super::gateway::{HttpRoute, InferencePool};
#[cfg(feature = "crd")]
use pilothouse_pods::api::schema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// How a model is served.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct ServingFields {
    /// The port on which the server listens; it gets it in the variable `PORT`.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 65535)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u32>,
    /// Whether all Pods are removed for the time being, whatever `replicas` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// How many seconds the server has to load the model before it is restarted. Default: 600.
    #[cfg_attr(feature = "crd", schemars(range(min = 10, max = 86400)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub startup_timeout_seconds: Option<u32>,
    /// After how many seconds without progress a rollout counts as stuck. Default: what the download and the load may take, and ten
    /// minutes more.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 604800)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress_deadline_seconds: Option<u32>,
    /// How many seconds a Pod that is being removed still takes requests, until no client is sent to it any more. Default: 15.
    #[cfg_attr(feature = "crd", schemars(range(max = 3600)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_seconds: Option<u32>,
    /// How many seconds a Pod that is being removed has in all, with `drainSeconds`. Default: 60.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 86400)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination_grace_period_seconds: Option<u32>,
    /// How Pods are replaced. Default: with GPUs one after the other, so that no spare GPU is needed; else a quarter at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout: Option<RolloutFields>,
    /// How many Pods may be missing at a time, as when nodes are drained. Default: one of two or more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disruption_budget: Option<DisruptionBudget>,
    /// Lets only these peers reach the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_policy: Option<NetworkPolicy>,
    /// Lets the Prometheus operator scrape the server's metrics.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub monitor: Option<Monitor>,
    /// Offers the server outside of the cluster.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ingress: Option<Ingress>,
    /// Leads requests of a Gateway to the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub http_route: Option<HttpRoute>,
    /// Lets an endpoint picker choose the Pod for each request that the Gateway leads here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inference_pool: Option<InferencePool>,
    /// A Pod template that is merged strategically into the one that follows from the other fields. The server's container is
    /// `model`.
    #[cfg_attr(feature = "crd", schemars(schema_with = "schema::free_form"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template: Option<Map<String, Value>>,
}

/// How Pods are replaced.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct RolloutFields {
    /// How many Pods may exist beyond `replicas`: a number, or a share such as `25%`.
    #[cfg_attr(feature = "crd", schemars(schema_with = "schema::int_or_percent"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_surge: Option<Value>,
    /// How many Pods may be missing: a number, or a share such as `25%`.
    #[cfg_attr(feature = "crd", schemars(schema_with = "schema::int_or_percent"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<Value>,
}

/// How many Pods may be missing at a time: one of the two.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct DisruptionBudget {
    /// How many Pods may be missing.
    #[cfg_attr(feature = "crd", schemars(schema_with = "schema::int_or_percent"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<Value>,
    /// How many Pods must be there.
    #[cfg_attr(feature = "crd", schemars(schema_with = "schema::int_or_percent"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_available: Option<Value>,
}

/// Who may reach the server.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkPolicy {
    /// Peers as in a NetworkPolicy. Default: the Pods of the same namespace.
    #[cfg_attr(feature = "crd", schemars(schema_with = "schema::free_form_list"))]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<Value>,
}

/// How the Prometheus operator scrapes the server.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Monitor {
    /// The kind that is made.
    pub kind: MonitorKind,
    /// How often it scrapes, such as `15s`.
    #[cfg_attr(feature = "crd", schemars(length(max = 16), regex(pattern = r"^[0-9]+(ms|s|m|h)$")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interval: Option<String>,
    /// Labels by which a Prometheus finds it.
    #[cfg_attr(feature = "crd", schemars(schema_with = "schema::labels"))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

/// A kind of the Prometheus operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
pub enum MonitorKind {
    /// It finds Pods by their Service.
    ServiceMonitor,
    /// It finds Pods by their labels.
    PodMonitor,
}

/// How the server is reached from outside of the cluster.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Ingress {
    /// The host name. Default: every host.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 253)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The path with which requests begin. Default: `/`.
    #[cfg_attr(feature = "crd", schemars(length(max = 1024), regex(pattern = r"^/")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The class of the ingress controller.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 253)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub class_name: Option<String>,
    /// The Secret with the certificate for the host.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 253)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_secret_name: Option<String>,
}
