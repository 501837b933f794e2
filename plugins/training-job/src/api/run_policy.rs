//! How failures are retried, how long a job may run, and what is cleaned up at its end.

use serde::{Deserialize, Serialize};

/// How failures are retried, how long the job may run, and what is cleaned up at its end.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunPolicy {
    /// Which failures are retried. Default: `OnFailure` for pytorch, `Never` for tensorflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_policy: Option<RestartPolicy>,
    /// What a retry restarts. Default: `Job` for pytorch, whose workers cannot go on without each other; `Worker` for
    /// tensorflow and for elastic jobs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restart_scope: Option<RestartScope>,
    /// How many restarts the job may have before it fails. Default: 6.
    #[cfg_attr(feature = "crd", schemars(range(max = 1000000)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub backoff_limit: Option<u32>,
    /// The job fails if it still runs so many seconds after it started or was resumed.
    #[cfg_attr(feature = "crd", schemars(range(min = 1, max = 2147483647)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active_deadline_seconds: Option<u32>,
    /// The job is deleted so many seconds after its end, with everything that it created.
    #[cfg_attr(feature = "crd", schemars(range(max = 2147483647)))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ttl_seconds_after_finished: Option<u32>,
    /// Which Pods are removed at the end. Default: `None`.
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
    /// All. Containers that end with success are restarted as well.
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

/// Which Pods are removed when the job has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
pub enum CleanPodPolicy {
    /// No Pod. If the deadline or the backoff limit stopped the job: Pods that still run or wait.
    None,
    /// Pods that still run or wait.
    Running,
    /// All Pods.
    All,
}
