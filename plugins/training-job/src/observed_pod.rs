//! The few fields of live children that tell how a job is; reading them whole would cost more than the rest of a call.

use crate::fingerprint;
use pilothouse_sdk::Kind;
use serde::Deserialize;
use std::collections::BTreeMap;

/// A live Pod.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct LivePod {
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

impl Kind for LivePod {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Pod";
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: String,
    uid: String,
    deletion_timestamp: Option<String>,
    annotations: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: String,
    reason: String,
    message: String,
    conditions: Vec<PodCondition>,
    init_container_statuses: Vec<ContainerStatus>,
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct PodCondition {
    #[serde(rename = "type")]
    condition_type: String,
    status: String,
    reason: String,
    message: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ContainerStatus {
    name: String,
    restart_count: u32,
    state: ContainerState,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct ContainerState {
    waiting: Option<Waiting>,
    terminated: Option<Terminated>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
struct Waiting {
    reason: String,
    message: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Terminated {
    exit_code: i32,
    reason: String,
    message: String,
}

/// How far a Pod is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodPhase {
    /// It waits, or nobody knows.
    Pending,
    /// It runs.
    Running,
    /// All its containers ended well.
    Succeeded,
    /// It ended badly.
    Failed,
}

/// Why a Pod is as it is: a word and a sentence, either of which may be empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Why<'p> {
    /// One word.
    pub reason: &'p str,
    /// A sentence.
    pub message: &'p str,
}

/// Reasons of a waiting container that are no trouble.
const ON_ITS_WAY: [&str; 3] = ["", "ContainerCreating", "PodInitializing"];

impl LivePod {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Its UID.
    pub fn uid(&self) -> &str {
        &self.metadata.uid
    }

    /// Whether it is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// What it was made for, compared with a job's fingerprint.
    pub fn matches(&self, fingerprint: &str) -> fingerprint::Match {
        fingerprint::compare(self.metadata.annotations.get(fingerprint::ANNOTATION).map(String::as_str), fingerprint)
    }

    /// How far it is.
    pub fn phase(&self) -> PodPhase {
        match self.status.phase.as_str() {
            "Running" => PodPhase::Running,
            "Succeeded" => PodPhase::Succeeded,
            "Failed" => PodPhase::Failed,
            _ => PodPhase::Pending,
        }
    }

    /// How it is in one word: why a container waits, if that is trouble, and its phase otherwise.
    pub fn word(&self) -> &str {
        match (self.trouble(), self.status.phase.as_str()) {
            (Some(waiting), _) => &waiting.reason,
            (None, "") => "Pending",
            (None, phase) => phase,
        }
    }

    /// Why it does not run.
    pub fn why(&self) -> Why<'_> {
        if let Some(waiting) = self.trouble() {
            return Why { reason: &waiting.reason, message: &waiting.message };
        }
        match self.phase() {
            PodPhase::Pending => self.unscheduled().unwrap_or_default(),
            PodPhase::Failed => self.failure(),
            PodPhase::Running | PodPhase::Succeeded => Why::default(),
        }
    }

    /// The exit code of the trainer, if it failed.
    pub fn exit_code(&self, container: &str) -> Option<i32> {
        let terminated = self.status.container_statuses.iter().filter(|status| status.name == container);
        let code = terminated.filter_map(|status| status.state.terminated.as_ref()).map(|ended| ended.exit_code).next();
        code.filter(|code| *code != 0)
    }

    /// How often the kubelet restarted the trainer.
    pub fn restarts(&self, container: &str) -> u32 {
        let statuses = self.status.container_statuses.iter();
        statuses.filter(|status| status.name == container).map(|status| status.restart_count).sum()
    }

    fn containers(&self) -> impl Iterator<Item = &ContainerStatus> {
        self.status.init_container_statuses.iter().chain(&self.status.container_statuses)
    }

    fn trouble(&self) -> Option<&Waiting> {
        let waiting = self.containers().filter_map(|status| status.state.waiting.as_ref());
        let mut trouble = waiting.filter(|waiting| !ON_ITS_WAY.contains(&waiting.reason.as_str()));
        trouble.next().filter(|_| !matches!(self.phase(), PodPhase::Succeeded | PodPhase::Failed))
    }

    fn unscheduled(&self) -> Option<Why<'_>> {
        let mut conditions = self.status.conditions.iter();
        let found = conditions.find(|found| found.condition_type == "PodScheduled" && found.status == "False")?;
        Some(Why { reason: &found.reason, message: &found.message })
    }

    /// What the Pod says itself, as when it is evicted, or else its container.
    fn failure(&self) -> Why<'_> {
        if !self.status.reason.is_empty() {
            return Why { reason: &self.status.reason, message: &self.status.message };
        }
        let ended = self.containers().filter_map(|status| status.state.terminated.as_ref());
        let mut failed = ended.filter(|ended| ended.exit_code != 0);
        failed.next().map(|ended| Why { reason: &ended.reason, message: &ended.message }).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::LivePod;

    /// A Pod's status, and its word, reason and message.
    const CASES: &[(&str, &str, &str, &str)] = &[
        ("{}", "Pending", "", ""),
        ("{phase: Running}", "Running", "", ""),
        ("{phase: Unknown}", "Unknown", "", ""),
        (
            "{phase: Pending, containerStatuses: [{name: pytorch, state: {waiting: {reason: ContainerCreating}}}]}",
            "Pending",
            "",
            "",
        ),
        (
            "{phase: Pending, containerStatuses: [
              {name: pytorch, state: {waiting: {reason: ImagePullBackOff, message: no such image}}}]}",
            "ImagePullBackOff",
            "ImagePullBackOff",
            "no such image",
        ),
        (
            "{phase: Running, containerStatuses: [{name: pytorch, state: {waiting: {reason: CrashLoopBackOff}}}]}",
            "CrashLoopBackOff",
            "CrashLoopBackOff",
            "",
        ),
        (
            "{phase: Pending, initContainerStatuses: [{name: proxy, state: {waiting: {reason: ErrImagePull}}}]}",
            "ErrImagePull",
            "ErrImagePull",
            "",
        ),
        (
            "{phase: Pending, conditions: [
              {type: PodScheduled, status: 'False', reason: Unschedulable, message: 0/3 nodes}]}",
            "Pending",
            "Unschedulable",
            "0/3 nodes",
        ),
        (
            "{phase: Failed, containerStatuses: [
              {name: pytorch, state: {terminated: {exitCode: 137, reason: OOMKilled, message: m}}}]}",
            "Failed",
            "OOMKilled",
            "m",
        ),
        ("{phase: Failed, reason: Evicted, message: disk pressure}", "Failed", "Evicted", "disk pressure"),
    ];

    #[test]
    fn says_how_a_pod_is_and_why() -> Result<(), Box<dyn std::error::Error>> {
        for (status, word, reason, message) in CASES {
            let pod: LivePod = serde_saphyr::from_str(&format!("{{metadata: {{name: a}}, status: {status}}}"))?;
            let why = pod.why();
            assert_eq!((pod.word(), why.reason, why.message), (*word, *reason, *message), "{status}");
        }
        Ok(())
    }

    #[test]
    fn only_the_trainer_counts_among_containers() -> Result<(), Box<dyn std::error::Error>> {
        let pod: LivePod = serde_saphyr::from_str(
            "{metadata: {name: a}, status: {containerStatuses: [
              {name: proxy, restartCount: 7, state: {terminated: {exitCode: 1}}},
              {name: pytorch, restartCount: 2, state: {terminated: {exitCode: 143}}},
              {name: tensorflow, restartCount: 0, state: {terminated: {exitCode: 0}}}]}}",
        )?;
        assert_eq!((pod.restarts("pytorch"), pod.exit_code("pytorch")), (2, Some(143)));
        assert_eq!((pod.restarts("tensorflow"), pod.exit_code("tensorflow")), (0, None));
        Ok(())
    }
}
