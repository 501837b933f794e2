//! How failures are retried, how long a job may run, and what is cleaned up at its end.

use super::PodFailurePolicy;
use serde::{Deserialize, Serialize};

/// How failures are retried, how long the job may run, and what is cleaned up at its end.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunPolicy {
    /// Which failures are retried. Default: `Never` for tensorflow, or else `OnFailure`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_policy: Option<RestartPolicy>,
    /// What becomes of a Pod that has failed, by its exit code, its reason and its conditions. The first rule that fits counts;
    /// where none fits, `restartPolicy` does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_failure_policy: Option<PodFailurePolicy>,
    /// What a retry restarts. Default: `Job`, for workers cannot go on without each other; `Worker` for elastic jobs and for
    /// tensorflow with parameter servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_scope: Option<RestartScope>,
    /// How many restarts after failures the job may have before it fails. What fails together counts once. Default: 6.
    #[cfg_attr(feature = "crd", schemars(range(max = 1000000)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_limit: Option<u32>,
    /// Restarts no longer count once the job has run for so many seconds without another. Default: they always count.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 2147483647)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_reset_seconds: Option<u32>,
    /// How many times in a row workers may be lost or disrupted by the cluster, without ten minutes of training in between,
    /// before the job fails. Default: 100.
    #[cfg_attr(feature = "crd", schemars(range(max = 1000000)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disruption_limit: Option<u32>,
    /// The job fails if not all Pods that it needs run so many seconds after they were to start, or to start again. Its Pods go
    /// then, with their GPUs. Default: it waits.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 2147483647)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_deadline_seconds: Option<u32>,
    /// How long a Pod that is being deleted may still exist after its grace period, as on a node that is lost, in seconds. Default:
    /// the job waits, and says so.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 2147483647)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub termination_timeout_seconds: Option<u32>,
    /// What happens to a Pod that exists for longer. Default: `Fail`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_termination_timeout: Option<TerminationTimeoutAction>,
    /// The job fails if it still runs so many seconds after it started, or started again after a suspension or a time without quota.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 2147483647)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_deadline_seconds: Option<u32>,
    /// The training hangs if it runs for so many seconds without a change of its progress. Default: nobody looks.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 2147483647)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress_deadline_seconds: Option<u32>,
    /// What becomes of a training that hangs. Default: `Report`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_hang: Option<HangAction>,
    /// The job is deleted so many seconds after its end, with everything that it created.
    #[cfg_attr(feature = "crd", schemars(range(max = 2147483647)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<u32>,
    /// Which Pods are removed at the end. Default: `None`; for mpi, whose workers never end by themselves, `Running`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clean_pod_policy: Option<CleanPodPolicy>,
    /// Whether the job is suspended: its Pods are removed, and created again when this is unset.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// Who manages the job. Any manager but `pilothouse.dev/training-job` means that Pilothouse leaves the job alone.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 253)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_by: Option<String>,
}

/// Which failures are retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
pub enum RestartPolicy {
    /// All. Where workers restart alone, containers that end with success are restarted as well.
    Always,
    /// All.
    OnFailure,
    /// None.
    Never,
    /// Those with an exit code of 128 or above, which a signal causes. Exit codes 1 to 127 are final.
    ExitCode,
}

/// What a retry restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
pub enum RestartScope {
    /// The worker that failed.
    Worker,
    /// All workers. No new one starts before the last old one is gone.
    Job,
}

/// What happens to a Pod that does not go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
pub enum TerminationTimeoutAction {
    /// The job fails.
    Fail,
    /// The Pod is deleted without its node, and the job goes on. Where the node still runs, so may the processes of the Pod.
    ForceDelete,
}

/// What becomes of a training that makes no progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
pub enum HangAction {
    /// The job is not ready, and says so.
    Report,
    /// All workers are restarted, which counts against the backoff limit.
    Restart,
}

/// Which Pods are removed when the job has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
pub enum CleanPodPolicy {
    /// No Pod. If a limit or a deadline stopped the job: Pods that still run or wait.
    None,
    /// Pods that still run or wait.
    Running,
    /// All Pods.
    All,
}
