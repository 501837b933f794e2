//! How the work is distributed over workers.

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
    /// JAX: workers meet at `JAX_COORDINATOR_ADDRESS`.
    Jax,
    /// MPI: a launcher starts processes on the workers by SSH.
    Mpi,
}

impl Framework {
    /// As it is in a spec. The container of a worker has the same name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pytorch => "pytorch",
            Self::Tensorflow => "tensorflow",
            Self::Jax => "jax",
            Self::Mpi => "mpi",
        }
    }
}

/// When a job has succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
pub enum SuccessPolicy {
    /// When the chief, or else worker 0, has succeeded, whatever happens to the other workers.
    ChiefWorker,
    /// When all workers have succeeded.
    AllWorkers,
}

/// How the launcher of an MPI job reaches the workers.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Mpi {
    /// A Secret of the type `kubernetes.io/ssh-auth` in the job's namespace, with the keys `ssh-privatekey` and `ssh-publickey`. It is
    /// mounted in all Pods of the job and read by nobody else.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 253)))]
    pub ssh_secret_name: String,
    /// The home directory's `.ssh`, where the keys are mounted. Default: `/root/.ssh`.
    #[cfg_attr(feature = "crd", schemars(length(max = 1024), regex(pattern = r"^(/[A-Za-z0-9._-]+)+$")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssh_directory: Option<String>,
    /// Whose `mpirun` the launcher runs. Default: `OpenMPI`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub implementation: Option<MpiImplementation>,
}

/// An implementation of MPI.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
pub enum MpiImplementation {
    /// Open MPI.
    #[serde(rename = "OpenMPI")]
    OpenMpi,
    /// Intel MPI.
    Intel,
    /// MPICH and what is made of it.
    #[serde(rename = "MPICH")]
    Mpich,
}

/// The bounds within which the number of workers may change while the job runs.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Elastic {
    /// The smallest number of workers with which the training goes on.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 1000)))]
    pub min_workers: u32,
    /// The largest number of workers.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 1000)))]
    pub max_workers: u32,
    /// How many times torchrun itself restarts the processes of a worker before the worker fails.
    #[cfg_attr(feature = "crd", schemars(range(max = 1000)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_restarts: Option<u32>,
    /// Settings of torchrun's rendezvous, such as `join_timeout`.
    #[cfg_attr(feature = "crd", schemars(schema_with = "pilothouse_pods::api::schema::short_texts"))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rendezvous_conf: BTreeMap<String, String>,
}

/// A gang scheduler: it starts a group of Pods together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum GangScheduler {
    /// Volcano.
    Volcano,
    /// The coscheduling plugin of the Kubernetes scheduler-plugins.
    SchedulerPlugins,
}

/// Gang scheduling: either all Pods of the job start, or none.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct GangScheduling {
    /// The scheduler, which must be installed. The job gets a PodGroup of its kind.
    pub scheduler: GangScheduler,
    /// The `schedulerName` of the Pods, if the scheduler does not run under its usual name.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 253)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scheduler_name: Option<String>,
    /// How many Pods must start together. Default: all of them, or `minWorkers` of an elastic job.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 1102)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_member: Option<u32>,
    /// The queue of the PodGroup (Volcano).
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 253)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// How many seconds the scheduler tries before it puts the PodGroup back (scheduler-plugins).
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 86400)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule_timeout_seconds: Option<u32>,
}
