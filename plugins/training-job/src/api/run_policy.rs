//! What becomes of failures, of jobs that take long, and of what is left in the end.

use serde::{Deserialize, Serialize};

/// How the job is run.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunPolicy {
    /// Which failures are retried: `OnFailure` if it is not said for pytorch, `Never` for tensorflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_policy: Option<RestartPolicy>,
    /// What a retry restarts: `Job` if it is not said for pytorch, for its workers cannot go on without each other;
    /// `Worker` for tensorflow and for elastic jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_scope: Option<RestartScope>,
    /// How many restarts there may be before the job has failed; 6 if it is not said.
    #[cfg_attr(feature = "crd", schemars(range(max = 1000000)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_limit: Option<u32>,
    /// The job has failed if it is still running so many seconds after it started or was resumed.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 2147483647)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_deadline_seconds: Option<u32>,
    /// The job is deleted so many seconds after its end, and with it everything that it made.
    #[cfg_attr(feature = "crd", schemars(range(max = 2147483647)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<u32>,
    /// Which Pods are removed at the end: `None` if it is not said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clean_pod_policy: Option<CleanPodPolicy>,
    /// Stops the job: its Pods are removed, and made anew when this is no longer set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub suspend: Option<bool>,
    /// Who manages the job; one that is not managed by `pilothouse.dev/training-job` is left alone.
    #[cfg_attr(feature = "crd", schemars(length(min = 1, max = 253)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub managed_by: Option<String>,
}

/// Which failures are retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
pub enum RestartPolicy {
    /// All; containers that end with success are started again, too.
    Always,
    /// All.
    OnFailure,
    /// None.
    Never,
    /// Those with an exit code of 128 or above, as of a container that was killed; 1 to 127 are final.
    ExitCode,
}

/// What a retry restarts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
pub enum RestartScope {
    /// The worker that failed.
    Worker,
    /// All workers: none begins before the last of the old ones is gone.
    Job,
}

/// Which Pods are removed when the job has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
pub enum CleanPodPolicy {
    /// No Pod, unless the job was stopped by its deadline or its backoff limit: then those that still run.
    None,
    /// Pods that still run or wait.
    Running,
    /// All Pods.
    All,
}
