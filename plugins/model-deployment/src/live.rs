//! The workload as the cluster has it: how many servers it is asked for, and how far its rollout is.

use pilothouse_pods::workload::Workload;
use pilothouse_sdk::Kind;
use serde::Deserialize;

/// An observed workload.
#[derive(Debug, Default, Deserialize)]
pub struct Live {
    #[serde(default)]
    spec: Spec,
    /// How far its rollout is.
    #[serde(flatten)]
    pub workload: Workload,
}

/// An observed StatefulSet.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct LiveStatefulSet(Live);

impl Kind for LiveStatefulSet {
    const API_VERSION: &'static str = "apps/v1";
    const KIND: &'static str = "StatefulSet";
}

/// An observed LeaderWorkerSet.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct LiveGroups(Live);

impl Kind for LiveGroups {
    const API_VERSION: &'static str = "leaderworkerset.x-k8s.io/v1";
    const KIND: &'static str = "LeaderWorkerSet";
    const FIELDS: &'static [&'static str] = &["/metadata/name"];
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Spec {
    replicas: Option<i32>,
}

impl Live {
    /// How many servers it is asked for; none if it does not exist.
    pub fn replicas(&self) -> Option<i32> {
        self.spec.replicas
    }
}

impl From<LiveStatefulSet> for Live {
    fn from(LiveStatefulSet(live): LiveStatefulSet) -> Self {
        live
    }
}

impl From<LiveGroups> for Live {
    fn from(LiveGroups(Self { spec, workload }): LiveGroups) -> Self {
        Self { spec, workload: workload.of_groups() }
    }
}
