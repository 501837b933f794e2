//! What servers shall achieve.

use serde::{Deserialize, Serialize};

/// What the servers shall achieve.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Sla {
    /// The latency that 95 of 100 requests stay within, such as `100ms` or `1.5s`.
    #[cfg_attr(feature = "crd", schemars(length(max = 16), regex(pattern = r"^[0-9]+(\.[0-9]+)?(ms|s)$")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_latency: Option<String>,
    /// Which latency. Default: the time to the first token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_metric: Option<LatencyMetric>,
    /// How many requests per second all servers together can take.
    #[cfg_attr(feature = "crd", schemars(range(min = 0, max = 1000000)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_throughput: Option<u32>,
    /// How many requests per second one server takes: what `minThroughput` is divided by.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 1000000)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput_per_replica: Option<u32>,
}

/// A latency that an engine measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub enum LatencyMetric {
    /// From the arrival of a request to its first token.
    #[default]
    TimeToFirstToken,
    /// From one token to the next.
    InterTokenLatency,
    /// From the arrival of a request to its end.
    EndToEndLatency,
}
