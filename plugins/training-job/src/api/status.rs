//! The status of a job: what the plugin reports, and all that it knows of earlier calls.

use super::is_zero;
use serde::{Deserialize, Serialize};

/// The state of the job, and what the next call must know of this one. The host adds `observedGeneration` and `conditions`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct TrainingJobStatus {
    /// The phase of the job. A suspended job is `Pending` and has the condition `Suspended`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
    /// When all Pods had been created. It is set anew when the job is resumed, or gets its quota back; `elapsedSeconds` has the time before.
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
    /// The state of the chief, if it has a Pod of its own.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub chief_statuses: Vec<WorkerStatus>,
    /// The state of the evaluator.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub evaluator_statuses: Vec<WorkerStatus>,
    /// The state of the launcher.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub launcher_statuses: Vec<WorkerStatus>,
    /// Pods that should have been gone long ago and belong to none of these: of a worker that was scaled away, or of a job that is
    /// suspended or has ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub stuck_pods: Vec<StuckPod>,
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
    /// How many restarts were counted against the backoff limit, with those that the kubelet made within Pods.
    pub restart_count: u32,
    /// How many times in a row workers were lost or disrupted by the cluster, without ten minutes of training in between.
    #[serde(skip_serializing_if = "is_zero")]
    pub disruption_count: u32,
    /// When the last counted failure happened. What ran at that time and fails soon after is counted with it.
    #[cfg_attr(feature = "crd", schemars(extend("format" = "date-time")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_failure_time: Option<String>,
    /// When Pods were removed last because of a failure or a loss.
    #[cfg_attr(feature = "crd", schemars(extend("format" = "date-time")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_restart_time: Option<String>,
    /// How many seconds after that new Pods are created.
    #[serde(skip_serializing_if = "is_zero")]
    pub restart_delay_seconds: u32,
    /// Since when all Pods that the job needs are to run, and do not.
    #[cfg_attr(feature = "crd", schemars(extend("format" = "date-time")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub starting_since: Option<String>,
    /// Since when all Pods that the job needs run without a failure.
    #[cfg_attr(feature = "crd", schemars(extend("format" = "date-time")))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub running_since: Option<String>,
    /// How many seconds the job had been active before it was suspended, or lost its quota.
    #[serde(skip_serializing_if = "is_zero")]
    pub elapsed_seconds: u32,
    /// How far the training is, as the program itself reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub progress: Option<Progress>,
    /// Pods that are to go and are not being deleted yet. Their deletion is told of when it has begun.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub leaving_pods: Vec<LeavingPod>,
    /// UIDs of Pods that are removed for a restart, until all replicas have Pods again. Their failures are counted already.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub retiring_pods: Vec<String>,
    /// The conditions as the host wrote them last. Only the host writes them, so a response never contains them here.
    #[cfg_attr(feature = "crd", schemars(skip))]
    #[serde(skip_serializing)]
    pub conditions: Vec<StatusCondition>,
}

/// How far the training is: what the program writes into the annotation `ml.example.com/progress` of its Pod.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct Progress {
    /// All of it in a few words: `step 120/1000, loss 0.31, 5m left`.
    pub summary: String,
    /// The step that the training has reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
    /// How many steps there are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_steps: Option<u64>,
    /// The loss, as the program writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loss: Option<String>,
    /// How many seconds the training still takes, as the program guesses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_remaining_seconds: Option<u64>,
    /// When it changed last.
    #[cfg_attr(feature = "crd", schemars(extend("format" = "date-time")))]
    pub last_update_time: String,
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
    /// Why it does not run, in one word such as `Unschedulable`, `OOMKilled` or `Evicted`; `FailedCreatePod` if its Pod is
    /// refused, `FailedDeletePod` if its Pod does not go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same in a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The exit code with which its container failed last, also where the kubelet has restarted it since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How many times the kubelet has restarted its container.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub restarts: Option<u32>,
    /// The UID of its Pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_uid: Option<String>,
}

/// A Pod that is being deleted and does not go.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct StuckPod {
    /// Its name.
    pub pod_name: String,
    /// `FailedDeletePod`, or `ForceDeletePod` if it is deleted without its node.
    pub reason: String,
    /// The same in a sentence: its node, and since when.
    pub message: String,
}

/// A Pod that is to go and is not being deleted yet.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[cfg_attr(feature = "crd", derive(schemars::JsonSchema))]
#[serde(rename_all = "camelCase", default)]
pub struct LeavingPod {
    /// Its name.
    pub pod_name: String,
    /// Its UID.
    pub pod_uid: String,
}

/// What is wrong with a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PodProblem<'s> {
    /// Its name.
    pub pod_name: &'s str,
    /// One word.
    pub reason: &'s str,
    /// A sentence, if there is one.
    pub message: Option<&'s str>,
    /// Whether it cannot be made or does not go, so that others wait for it.
    pub blocks: bool,
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

    /// What is wrong with the first replica in trouble: its Pod, one word and a sentence. A Pod that cannot be made or does not go
    /// comes first, for others wait for it.
    pub fn obstacle(&self) -> Option<String> {
        let first = self.problems().find(|problem| problem.blocks).or_else(|| self.problems().next())?;
        let message = first.message.map(|message| format!(": {message}")).unwrap_or_default();
        Some(format!("{}: {}{message}", first.pod_name, first.reason))
    }

    /// What is wrong with Pods.
    pub fn problems(&self) -> impl Iterator<Item = PodProblem<'_>> {
        let of_replicas = self.replica_statuses().filter_map(|replica| {
            let (pod_name, message) = (replica.pod_name.as_str(), replica.message.as_deref());
            let blocks = matches!(replica.status.as_str(), "Missing" | "Terminating");
            replica.reason.as_deref().map(|reason| PodProblem { pod_name, reason, message, blocks })
        });
        let of_stuck = self.stuck_pods.iter().map(|StuckPod { pod_name, reason, message }| PodProblem {
            pod_name,
            reason,
            message: Some(message),
            blocks: true,
        });
        of_replicas.chain(of_stuck)
    }

    /// The statuses of all replicas: workers, then all others.
    pub fn replica_statuses(&self) -> impl Iterator<Item = &WorkerStatus> {
        self.worker_statuses.iter().chain(self.other_statuses())
    }

    /// The statuses of all replicas, to be changed.
    pub fn replica_statuses_mut(&mut self) -> impl Iterator<Item = &mut WorkerStatus> {
        let of_workers = self.worker_statuses.iter_mut().chain(&mut self.parameter_server_statuses);
        let of_tensorflow = of_workers.chain(&mut self.chief_statuses).chain(&mut self.evaluator_statuses);
        of_tensorflow.chain(&mut self.launcher_statuses)
    }

    /// The statuses of all replicas but the workers.
    pub fn other_statuses(&self) -> impl Iterator<Item = &WorkerStatus> {
        let of_tensorflow =
            self.parameter_server_statuses.iter().chain(&self.chief_statuses).chain(&self.evaluator_statuses);
        of_tensorflow.chain(&self.launcher_statuses)
    }
}
