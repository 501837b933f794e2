//! How the work is spread over workers.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A machine learning framework.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Framework {
    /// PyTorch: workers meet through `MASTER_ADDR` or torchrun's variables.
    #[default]
    Pytorch,
    /// TensorFlow: workers know each other from `TF_CONFIG`.
    Tensorflow,
}

impl Framework {
    /// As it is in a spec, and the name of the container that trains.
    pub fn word(self) -> &'static str {
        match self {
            Self::Pytorch => "pytorch",
            Self::Tensorflow => "tensorflow",
        }
    }
}

/// When a job has succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
pub enum SuccessPolicy {
    /// When worker 0 has, whatever becomes of the others.
    ChiefWorker,
    /// When every worker has.
    AllWorkers,
}

/// Bounds within which the number of workers can change while the job runs.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Elastic {
    /// The fewest workers that training goes on with.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 100)))]
    pub min_workers: u32,
    /// The most workers that can take part.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 100)))]
    pub max_workers: u32,
    /// How often torchrun restarts the processes of a worker itself, before the worker fails.
    #[cfg_attr(feature = "crd", schemars(range(max = 1000)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_restarts: Option<u32>,
    /// Settings of torchrun's rendezvous, such as `join_timeout`.
    #[cfg_attr(feature = "crd", schemars(schema_with = "super::schema::words"))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rendezvous_conf: BTreeMap<String, String>,
}

/// A scheduler that starts groups of Pods together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum GangScheduler {
    /// Volcano.
    Volcano,
    /// The coscheduling plugin of the Kubernetes scheduler-plugins.
    SchedulerPlugins,
}

/// All workers start, or none.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GangScheduling {
    /// Which scheduler's PodGroup is made. The scheduler must be installed.
    pub scheduler: GangScheduler,
    /// The name under which the scheduler runs, if it is not its usual one.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 253)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler_name: Option<String>,
    /// How many Pods must start together; all of them if it is not said, and of an elastic job `minWorkers`.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 200)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_member: Option<u32>,
    /// The queue of the group (Volcano).
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 253)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// How long the scheduler tries before it gives the group up for now (scheduler-plugins).
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 86400)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule_timeout_seconds: Option<u32>,
}
