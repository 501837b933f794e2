//! What the replicas of a job do, and how a role differs from the workers.

use pilothouse_pods::api::Resources;
#[cfg(feature = "crd")]
use pilothouse_pods::api::schema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a replica does in its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
pub enum ReplicaType {
    /// It trains.
    #[serde(rename = "worker")]
    Worker,
    /// It holds parameters for the workers (tensorflow).
    #[serde(rename = "ps")]
    ParameterServer,
    /// It coordinates the others (tensorflow).
    #[serde(rename = "chief")]
    Chief,
    /// It evaluates checkpoints beside the training (tensorflow).
    #[serde(rename = "evaluator")]
    Evaluator,
    /// It starts processes on the workers (mpi).
    #[serde(rename = "launcher")]
    Launcher,
}

/// A role: what its replicas have in the place of what all workers have.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct Role {
    /// Which role. `chief` and `evaluator` have one replica each if they are named here.
    pub name: ReplicaType,
    /// The image. Default: that of the workers.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 1024), regex(pattern = r"^\S+$")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    /// The command. Default: `spec.command`; for the workers of an mpi job: `sshd`, which waits for the launcher.
    #[cfg_attr(feature = "crd", schemars(length(max = 128), inner(length(max = 16384))))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// The arguments. Default: those of the workers, unless the role has a command.
    #[cfg_attr(feature = "crd", schemars(length(max = 256), inner(length(max = 16384))))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Compute resources. Default: those of the workers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// How many GPUs each replica has. Default: `gpuPerWorker`; none for parameter servers, for a chief beside them, and for a launcher.
    #[cfg_attr(feature = "crd", schemars(range(max = 8)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<u32>,
    /// More fields of the Pods of this role, merged over `podTemplate` of the job.
    #[cfg_attr(feature = "crd", schemars(schema_with = "schema::free_form"))]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_template: Option<Map<String, Value>>,
}

impl ReplicaType {
    /// All, in the order in which a job lists its replicas.
    pub const ALL: [Self; 5] = [Self::Worker, Self::ParameterServer, Self::Chief, Self::Evaluator, Self::Launcher];

    /// As it is in names and labels, and in `TF_CONFIG`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Worker => "worker",
            Self::ParameterServer => "ps",
            Self::Chief => "chief",
            Self::Evaluator => "evaluator",
            Self::Launcher => "launcher",
        }
    }
}
