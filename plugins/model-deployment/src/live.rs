//! The StatefulSet as the cluster has it: how many Pods it is asked for, and how far its rollout is.

use pilothouse_pods::workload::Workload;
use pilothouse_sdk::Kind;
use serde::Deserialize;

/// An observed StatefulSet.
#[derive(Debug, Default, Deserialize)]
pub struct LiveStatefulSet {
    #[serde(default)]
    spec: Spec,
    /// How far its rollout is.
    #[serde(flatten)]
    pub workload: Workload,
}

impl Kind for LiveStatefulSet {
    const API_VERSION: &'static str = "apps/v1";
    const KIND: &'static str = "StatefulSet";
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    replicas: Option<i32>,
}

impl LiveStatefulSet {
    /// How many Pods it is asked for; none if it does not exist.
    pub fn replicas(&self) -> Option<i32> {
        self.spec.replicas
    }
}
