//! The API types of `TrainingJob`, from which its CRD is made. They hold no behaviour.

mod distribution;
mod failure_policy;
mod role;
mod run_policy;
mod status;
mod storage;

pub use distribution::{Elastic, Framework, GangScheduler, GangScheduling, Mpi, MpiImplementation, SuccessPolicy};
pub use failure_policy::{
    ExitCodeOperator, OnExitCodes, OnPodCondition, PodFailureAction, PodFailurePolicy, PodFailureRule,
};
pub use role::{ReplicaType, Role};
pub use run_policy::{CleanPodPolicy, HangAction, RestartPolicy, RestartScope, RunPolicy, TerminationTimeoutAction};
pub use status::{LeavingPod, Phase, PodProblem, Progress, StatusCondition, StuckPod, TrainingJobStatus, WorkerStatus};
pub use storage::{Claim, ConfigMapMount, DataVolume};

#[cfg(feature = "crd")]
use pilothouse_pods::api::schema;
use pilothouse_pods::api::{EnvFrom, EnvVar, LocalRef, PullPolicy, Resources, SecurityContext, Toleration};
use pilothouse_sdk::Object;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// A `TrainingJob` as the API serves it.
pub type TrainingJob = Object<TrainingJobSpec, TrainingJobStatus>;

/// A distributed training job: what runs in every worker, how many workers there are, and what happens after failures.
// `image` and `command` are required by the schema and have defaults here nevertheless: under an older CRD they may be missing,
// and then the validation refuses the job with a sentence that helps.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct TrainingJobSpec {
    /// The framework of the training program. It decides which environment variables workers get. It cannot change.
    pub framework: Framework,
    /// How many workers there are. An elastic job can be scaled while it runs; any other job is restarted.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 1000)))]
    pub workers: u32,
    /// How many GPUs each worker has.
    #[cfg_attr(feature = "crd", schemars(range(max = 8)))]
    #[serde(default, skip_serializing_if = "is_zero")]
    pub gpu_per_worker: u32,
    /// The resource name of a GPU. Default: `nvidia.com/gpu`.
    #[cfg_attr(
        feature = "crd",
        schemars(length(max = 316), regex(pattern = r"^[a-z0-9.-]+/[A-Za-z0-9][A-Za-z0-9_.-]*$"))
    )]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_resource: Option<String>,

    /// The container image of all workers.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 1024), regex(pattern = r"^\S+$")))]
    #[serde(default)]
    pub image: String,
    /// When the image is pulled, as in a Pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_pull_policy: Option<PullPolicy>,
    /// Secrets in the job's namespace to pull the image with.
    #[cfg_attr(feature = "crd", schemars(length(max = 16)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub image_pull_secrets: Vec<LocalRef>,
    /// The training command.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 128), inner(length(max = 16384))))]
    #[serde(default)]
    pub command: Vec<String>,
    /// Arguments after the command.
    #[cfg_attr(feature = "crd", schemars(length(max = 256), inner(length(max = 16384))))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Environment variables of the workers, besides those of the framework. Where both set a name, this value wins. Names
    /// that tell workers apart are refused. ConfigMaps that they refer to are copied when the job starts.
    #[cfg_attr(feature = "crd", schemars(length(max = 128)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<EnvVar>,
    /// ConfigMaps and Secrets whose keys become environment variables. ConfigMaps are copied when the job starts.
    #[cfg_attr(feature = "crd", schemars(length(max = 16)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env_from: Vec<EnvFrom>,
    /// ConfigMaps that are mounted as files. They are copied when the job starts, so that later edits do not disturb it.
    #[cfg_attr(feature = "crd", schemars(length(max = 16)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub config_maps: Vec<ConfigMapMount>,
    /// Values of any structure for the training program. Workers find them as JSON in the variable `HYPERPARAMETERS` and in
    /// the file `/etc/hyperparameters/hyperparameters.json`.
    #[cfg_attr(feature = "crd", schemars(schema_with = "schema::free_form"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hyperparameters: Option<Map<String, Value>>,

    /// The claim with the training data, mounted at `/data`. It must exist before the job starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_volume: Option<DataVolume>,
    /// Where workers write checkpoints; they find it in `CHECKPOINT_DIR`. It is on the checkpoint volume, or else on the
    /// data volume under the same path, or else only in the Pod and lost with it.
    #[cfg_attr(feature = "crd", schemars(length(max = 1024), regex(pattern = r"^(/[A-Za-z0-9._-]+)+/?$")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_dir: Option<String>,
    /// The claim for checkpoints, mounted at `checkpointDir` (default: `/checkpoints`). It must exist before the job
    /// starts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_volume: Option<Claim>,
    /// The size of `/dev/shm`. Default: as much as the Pod's memory allows.
    #[cfg_attr(feature = "crd", schemars(schema_with = "schema::quantity"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shm_size: Option<Value>,

    /// Compute resources of each worker, besides its GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// Labels that a node must have.
    #[cfg_attr(feature = "crd", schemars(schema_with = "schema::labels"))]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints that the workers tolerate. Workers with GPUs also tolerate the taint of the GPU resource.
    #[cfg_attr(feature = "crd", schemars(length(max = 32)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tolerations: Vec<Toleration>,
    /// A node label such as `topology.kubernetes.io/zone`: where possible, workers run on nodes with the same value.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 317)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology_key: Option<String>,
    /// The priority class of the workers.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 253)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority_class_name: Option<String>,
    /// The service account of the workers. Without one, they get no token.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 253)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// The user and groups that the workers run as.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub security_context: Option<SecurityContext>,
    /// How many seconds a worker has to write a checkpoint when it is stopped. Default: 30.
    #[cfg_attr(feature = "crd", schemars(range(max = 86400)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination_grace_period_seconds: Option<u32>,

    /// More fields of the Pods: `metadata` with labels and annotations, and `spec`. They are merged over what the job makes, as a
    /// strategic merge patch is: the container has the name of the framework. What would break names, addresses or restarts is
    /// refused.
    #[cfg_attr(feature = "crd", schemars(schema_with = "schema::free_form"))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_template: Option<Map<String, Value>>,

    /// The port on which workers meet. Default: 29500 for pytorch, 2222 for tensorflow, 6666 for jax; for mpi the port of SSH, 22.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 65535)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u32>,
    /// How many processes run in each worker (pytorch, mpi). Default: one per GPU.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 64)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nproc_per_node: Option<u32>,
    /// How many parameter servers there are (tensorflow). Unless `roles` says otherwise, they run the same image and command,
    /// without GPUs.
    #[cfg_attr(feature = "crd", schemars(range(max = 100)))]
    #[serde(default, skip_serializing_if = "is_zero")]
    pub parameter_servers: u32,
    /// How roles differ from the workers. A `chief` and an `evaluator` (tensorflow) exist if they are named here; mpi has `worker` and
    /// `launcher`.
    #[cfg_attr(feature = "crd", schemars(length(max = 5)))]
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub roles: Vec<Role>,
    /// How the launcher reaches the workers (mpi, and required there). Workers run `sshd`, the launcher runs `command`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mpi: Option<Mpi>,
    /// Makes the number of workers elastic (pytorch): workers meet through torchrun's rendezvous and may join and leave.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub elastic: Option<Elastic>,
    /// When the job has succeeded. Default: `ChiefWorker` for tensorflow, `AllWorkers` for pytorch and jax; an elastic job has
    /// succeeded as soon as one worker has, and one of mpi when its launcher has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub success_policy: Option<SuccessPolicy>,
    /// Starts either all workers or none, by a scheduler that supports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gang_scheduling: Option<GangScheduling>,
    /// How failures are retried, how long the job may run, and what is cleaned up at its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_policy: Option<RunPolicy>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}
