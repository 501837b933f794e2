//! What the plugin reports, which is also all that it remembers from one call to the next.

use serde::{Deserialize, Serialize};

/// How far the job is, and what the next call must know. The host adds `observedGeneration` and `conditions`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct TrainingJobStatus {
    /// How far the job is. A suspended job is `Pending` and has the condition `Suspended`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// When all Pods had been created; anew when the job is resumed.
    #[cfg_attr(feature = "crd", schemars(extend("format" = "date-time")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_time: Option<String>,
    /// When the job ended.
    #[cfg_attr(feature = "crd", schemars(extend("format" = "date-time")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub completion_time: Option<String>,
    /// When the job is deleted, by its `ttlSecondsAfterFinished`.
    #[cfg_attr(feature = "crd", schemars(extend("format" = "date-time")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration_time: Option<String>,
    /// How every worker is.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub worker_statuses: Vec<WorkerStatus>,
    /// How every parameter server is.
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
    /// How many restarts were counted against the backoff limit. Those that the kubelet makes within a Pod are not in it.
    pub restart_count: u32,
    /// When the last restart that counts began.
    #[cfg_attr(feature = "crd", schemars(extend("format" = "date-time")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_restart_time: Option<String>,
    /// UIDs of Pods that are to go, and whose failures are counted already.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub retiring_pods: Vec<String>,
    /// The conditions as the host wrote them last; it writes them, so they are never part of an answer's status.
    #[cfg_attr(feature = "crd", schemars(skip))]
    #[serde(skip_serializing)]
    pub conditions: Vec<SeenCondition>,
}

/// How far a job is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
pub enum Phase {
    /// It waits for something, or for its Pods to run.
    Pending,
    /// It runs.
    Running,
    /// It has ended well.
    Succeeded,
    /// It has ended badly.
    Failed,
}

/// How one worker or parameter server is.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct WorkerStatus {
    /// Its number.
    pub worker_id: u32,
    /// The name of its Pod.
    pub pod_name: String,
    /// The phase of its Pod, or why its container waits, such as `ImagePullBackOff`; `Missing` and `Terminating` where
    /// the Pod is not there yet or on its way out.
    pub status: String,
    /// Why it is so, in one word, such as `Unschedulable`, `OOMKilled` or `Evicted`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The exit code of a container that failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How often the kubelet restarted its container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarts: Option<u32>,
    /// The UID of its Pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_uid: Option<String>,
}

/// A condition as it is in the object's status.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct SeenCondition {
    /// The aspect.
    #[serde(rename = "type")]
    pub condition_type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One word.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

impl TrainingJobStatus {
    /// Whether a condition is `True`.
    pub fn is(&self, condition_type: &str) -> bool {
        self.condition(condition_type).is_some_and(|condition| condition.status == "True")
    }

    /// A condition, if it is there.
    pub fn condition(&self, condition_type: &str) -> Option<&SeenCondition> {
        self.conditions.iter().find(|condition| condition.condition_type == condition_type)
    }

    /// Whether the job has ended.
    pub fn is_finished(&self) -> bool {
        matches!(self.phase, Some(Phase::Succeeded | Phase::Failed))
    }

    /// All members' statuses: workers, then parameter servers.
    pub fn members(&self) -> impl Iterator<Item = &WorkerStatus> {
        self.worker_statuses.iter().chain(&self.parameter_server_statuses)
    }
}
