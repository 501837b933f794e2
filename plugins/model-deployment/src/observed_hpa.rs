//! What the HorizontalPodAutoscaler observed: the latency, and whether it can read its metrics at all.

use crate::observed_scaled_object::ScaledObject;
use llm_serving::quantity::milliseconds;
use pilothouse_pods::owner::OwnedMetadata;
use pilothouse_sdk::Kind;
use serde::Deserialize;

/// An observed HorizontalPodAutoscaler.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ObservedHpa {
    #[serde(default)]
    metadata: OwnedMetadata,
    #[serde(default)]
    status: Status,
}

impl Kind for ObservedHpa {
    const API_VERSION: &'static str = "autoscaling/v2";
    const KIND: &'static str = "HorizontalPodAutoscaler";
    const FIELDS: &'static [&'static str] =
        &["/metadata/ownerReferences", "/status/conditions", "/status/currentMetrics"];
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    /// The API server says null before the first observation.
    current_metrics: Option<Vec<Metric>>,
    conditions: Option<Vec<HpaCondition>>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Metric {
    external: External,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct External {
    metric: Name,
    current: Current,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Name {
    name: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Current {
    value: String,
}

/// What the HorizontalPodAutoscaler says of one aspect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct HpaCondition {
    #[serde(rename = "type")]
    condition_type: String,
    status: String,
    /// One CamelCase word.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

impl ObservedHpa {
    /// Whether KEDA made it of the ScaledObject of this name. Anybody may have one under the name that KEDA would give it.
    pub fn is_of_scaled_object(&self, name: &str) -> bool {
        self.metadata.controller().is_some_and(|owner| owner.kind == ScaledObject::KIND && owner.name == name)
    }

    /// The milliseconds of the latency of this name, as observed last; none while it cannot be read.
    pub fn latency(&self, name: &str) -> Option<f64> {
        if self.inactive().is_some() {
            return None;
        }
        let found = self.status.current_metrics.iter().flatten().find(|metric| metric.external.metric.name == name)?;
        milliseconds(&found.external.current.value)
    }

    /// Why it cannot scale; none if it can, or has not said anything yet.
    pub fn inactive(&self) -> Option<&HpaCondition> {
        let is_inactive = |it: &&HpaCondition| it.condition_type == "ScalingActive" && it.status == "False";
        self.status.conditions.iter().flatten().find(is_inactive)
    }
}
