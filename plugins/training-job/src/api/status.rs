//! The status of a job: what the plugin reports, and all that it knows of earlier calls.

use serde::{Deserialize, Serialize};

/// The state of the job, and what the next call must know of this one. The host adds `observedGeneration` and `conditions`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct TrainingJobStatus {
    /// The phase of the job. A suspended job is `Pending` and has the condition `Suspended`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// When all Pods had been created. It is set anew when the job is resumed.
    #[cfg_attr(feature = "crd", schemars(extend("format" = "date-time")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<String>,
    /// When the job ended.
    #[cfg_attr(feature = "crd", schemars(extend("format" = "date-time")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<String>,
    /// When the job will be deleted, by its `ttlSecondsAfterFinished`.
    #[cfg_attr(feature = "crd", schemars(extend("format" = "date-time")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration_time: Option<String>,
    /// The state of each worker.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub worker_statuses: Vec<WorkerStatus>,
    /// The state of each parameter server.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub parameter_server_statuses: Vec<WorkerStatus>,
    /// How many workers have a Pod.
    pub replicas: u32,
    /// How many workers run.
    pub active: u32,
    /// How many workers have succeeded.
    pub succeeded: u32,
    /// How many workers have failed.
    pub failed: u32,
    /// The label selector of the workers, for autoscalers.
    pub selector: String,
    /// How many restarts were counted against the backoff limit, without those that the kubelet makes within a Pod.
    pub restart_count: u32,
    /// When the last counted restart began.
    #[cfg_attr(feature = "crd", schemars(extend("format" = "date-time")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_restart_time: Option<String>,
    /// UIDs of Pods that are being removed for a restart. Their failures are counted already.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub retiring_pods: Vec<String>,
    /// The conditions as the host wrote them last. Only the host writes them, so a response never contains them here.
    #[cfg_attr(feature = "crd", schemars(skip))]
    #[serde(skip_serializing)]
    pub conditions: Vec<StatusCondition>,
}

/// The phase of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
pub enum Phase {
    /// It waits for something, or its Pods do not run yet.
    Pending,
    /// It runs.
    Running,
    /// It has ended with success.
    Succeeded,
    /// It has ended with a failure.
    Failed,
}

/// The state of one worker or parameter server.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct WorkerStatus {
    /// Its number.
    pub worker_id: u32,
    /// The name of its Pod.
    pub pod_name: String,
    /// The phase of its Pod, or why its container cannot start, such as `ImagePullBackOff`. `Missing` if it has no Pod,
    /// `Terminating` if its Pod is being removed.
    pub status: String,
    /// Why it does not run, in one word such as `Unschedulable`, `OOMKilled` or `Evicted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The exit code of a container that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How many times the kubelet has restarted its container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarts: Option<u32>,
    /// The UID of its Pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_uid: Option<String>,
}

/// A condition in the status of an object.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct StatusCondition {
    /// Its type, such as `Running`.
    #[serde(rename = "type")]
    pub condition_type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One CamelCase word.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

impl TrainingJobStatus {
    /// Whether a condition is `True`.
    pub fn is_condition_true(&self, condition_type: &str) -> bool {
        self.condition(condition_type).is_some_and(|condition| condition.status == "True")
    }

    /// The condition of a type, if there is one.
    pub fn condition(&self, condition_type: &str) -> Option<&StatusCondition> {
        self.conditions.iter().find(|condition| condition.condition_type == condition_type)
    }

    /// Whether the job has ended.
    pub fn is_finished(&self) -> bool {
        matches!(self.phase, Some(Phase::Succeeded | Phase::Failed))
    }

    /// The statuses of all replicas: workers, then parameter servers.
    pub fn replica_statuses(&self) -> impl Iterator<Item = &WorkerStatus> {
        self.worker_statuses.iter().chain(&self.parameter_server_statuses)
    }
}
