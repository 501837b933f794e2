//! A Pod as the cluster has it: the few fields that tell its state. Reading whole Pods would cost more than the rest of a call.

use crate::owner::{self, OwnerReference};
use pilothouse_sdk::Kind;
use serde::Deserialize;
use std::collections::BTreeMap;

/// An observed Pod.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct ObservedPod {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

impl Kind for ObservedPod {
    const API_VERSION: &'static str = "v1";
    const KIND: &'static str = "Pod";
    const FIELDS: &'static [&'static str] = &[
        "/metadata/name",
        "/metadata/uid",
        "/metadata/deletionTimestamp",
        "/metadata/deletionGracePeriodSeconds",
        "/metadata/annotations",
        "/metadata/ownerReferences",
        "/spec/nodeName",
        "/status/phase",
        "/status/reason",
        "/status/message",
        "/status/conditions",
        "/status/initContainerStatuses",
        "/status/containerStatuses",
    ];
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Metadata {
    name: String,
    uid: String,
    deletion_timestamp: Option<String>,
    deletion_grace_period_seconds: Option<u32>,
    labels: BTreeMap<String, String>,
    annotations: BTreeMap<String, String>,
    finalizers: Vec<String>,
    owner_references: Vec<OwnerReference>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Spec {
    node_name: String,
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
#[serde(rename_all = "camelCase", default)]
struct PodCondition {
    #[serde(rename = "type")]
    condition_type: String,
    status: String,
    reason: String,
    message: String,
    last_transition_time: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct ContainerStatus {
    name: String,
    ready: bool,
    restart_count: u32,
    state: ContainerState,
    last_state: ContainerState,
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
    started_at: Option<String>,
    finished_at: Option<String>,
}

/// The phase of a Pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PodPhase {
    /// It does not run yet, or its node does not answer (`Unknown`).
    Pending,
    /// It runs.
    Running,
    /// All its containers have ended with success.
    Succeeded,
    /// It has ended, and a container of it has failed.
    Failed,
}

/// Why a Pod does not run. Either field may be empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cause<'p> {
    /// One CamelCase word.
    pub reason: &'p str,
    /// A sentence.
    pub message: &'p str,
}

/// How a container ended. Times are as the node wrote them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContainerEnd<'p> {
    /// Its exit code.
    pub exit_code: i32,
    /// When it had been started.
    pub started_at: Option<&'p str>,
    /// When it ended.
    pub finished_at: Option<&'p str>,
}

/// A deletion that is under way. Times are as the API server wrote them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deletion<'p> {
    /// When the grace period ends.
    pub ends_at: &'p str,
    /// How many seconds the grace period has.
    pub grace_period_seconds: u32,
}

/// What keeps a Pod from being ready, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble<'p> {
    /// The name of the Pod.
    pub pod: &'p str,
    /// The container at fault; none if the Pod itself is.
    pub container: Option<&'p str>,
    /// One CamelCase word.
    pub reason: &'p str,
    /// What the node or the scheduler said; empty if nothing.
    pub message: &'p str,
    /// The exit code with which the container ended last.
    pub exit_code: Option<i32>,
}

/// Reasons of a waiting container that starts as it should.
const NORMAL_WAITING_REASONS: [&str; 3] = ["", "ContainerCreating", "PodInitializing"];

impl Terminated {
    fn end(&self) -> ContainerEnd<'_> {
        ContainerEnd {
            exit_code: self.exit_code,
            started_at: self.started_at.as_deref(),
            finished_at: self.finished_at.as_deref(),
        }
    }
}

impl ObservedPod {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.metadata.name
    }

    /// Its UID.
    pub fn uid(&self) -> &str {
        &self.metadata.uid
    }

    /// The value of a label, if it has it. Lookups do not ask for labels.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.metadata.labels.get(name).map(String::as_str)
    }

    /// What controls it, such as a ReplicaSet; none if nothing does.
    pub fn controller(&self) -> Option<&OwnerReference> {
        owner::controller(&self.metadata.owner_references)
    }

    /// Whether it is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Its deletion, if it is being deleted.
    pub fn deletion(&self) -> Option<Deletion<'_>> {
        let ends_at = self.metadata.deletion_timestamp.as_deref()?;
        let grace_period_seconds = self.metadata.deletion_grace_period_seconds.unwrap_or_default();
        Some(Deletion { ends_at, grace_period_seconds })
    }

    /// What keeps it once it is to go, until somebody takes it off. Lookups do not ask for it.
    pub fn finalizers(&self) -> &[String] {
        &self.metadata.finalizers
    }

    /// The node that it is bound to; empty if it is bound to none.
    pub fn node_name(&self) -> &str {
        &self.spec.node_name
    }

    /// Whether it has a condition with a status.
    pub fn has_condition(&self, condition_type: &str, status: &str) -> bool {
        self.condition(condition_type).is_some_and(|condition| condition.status == status)
    }

    /// Since when a condition of it has its status.
    pub fn condition_since(&self, condition_type: &str) -> Option<&str> {
        self.condition(condition_type)?.last_transition_time.as_deref()
    }

    /// The reason of the Pod itself, such as `Evicted`; empty if it has none.
    pub fn reason(&self) -> &str {
        &self.status.reason
    }

    /// The value of an annotation.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.metadata.annotations.get(name).map(String::as_str)
    }

    /// Its phase.
    pub fn phase(&self) -> PodPhase {
        match self.status.phase.as_str() {
            "Running" => PodPhase::Running,
            "Succeeded" => PodPhase::Succeeded,
            "Failed" => PodPhase::Failed,
            _ => PodPhase::Pending,
        }
    }

    /// Its state in one word, as in the column STATUS of `kubectl get pods`: why a container cannot start, or else the phase.
    pub fn display_status(&self) -> &str {
        match (self.waiting_problem(), self.status.phase.as_str()) {
            (Some(waiting), _) => &waiting.reason,
            (None, "") => "Pending",
            (None, phase) => phase,
        }
    }

    /// Why it does not run; empty if nothing keeps it from running.
    pub fn cause(&self) -> Cause<'_> {
        if let Some(waiting) = self.waiting_problem() {
            return Cause { reason: &waiting.reason, message: &waiting.message };
        }
        match self.phase() {
            PodPhase::Pending => self.unscheduled().unwrap_or_default(),
            PodPhase::Failed => self.failure(),
            PodPhase::Running | PodPhase::Succeeded => Cause::default(),
        }
    }

    /// What keeps it from being ready; none if nothing does, or if it only starts.
    ///
    /// Other than [`Self::cause`], this also looks at how containers ended that the kubelet has restarted since: a container
    /// that is killed for its memory again and again runs most of the time.
    pub fn trouble(&self) -> Option<Trouble<'_>> {
        if self.is_deleting() || self.phase() == PodPhase::Succeeded {
            return None;
        }
        if let Some(trouble) = self.containers().filter(|container| !container.ready).find_map(|it| self.troubled(it)) {
            return Some(trouble);
        }
        let Cause { reason, message } = self.cause();
        (!reason.is_empty()).then(|| Trouble { pod: self.name(), container: None, reason, message, exit_code: None })
    }

    /// What is wrong with a container that is not ready.
    fn troubled<'p>(&'p self, status: &'p ContainerStatus) -> Option<Trouble<'p>> {
        let of = |reason, message, exit_code| Trouble {
            pod: self.name(),
            container: Some(&status.name),
            reason,
            message,
            exit_code,
        };
        let ended = status.state.terminated.as_ref().or(status.last_state.terminated.as_ref());
        let failed = ended.filter(|ended| ended.exit_code != 0);
        let waiting = status.state.waiting.as_ref();
        let waiting = waiting.filter(|waiting| !NORMAL_WAITING_REASONS.contains(&waiting.reason.as_str()));
        match (waiting, failed) {
            // The reason of the container's end says more than that it is started again later, unless it says nothing.
            (Some(waiting), Some(failed)) if matches!(failed.reason.as_str(), "" | "Error") => {
                let message = if failed.message.is_empty() { &waiting.message } else { &failed.message };
                Some(of(&waiting.reason, message, Some(failed.exit_code)))
            }
            (_, Some(failed)) => Some(of(&failed.reason, &failed.message, Some(failed.exit_code))),
            (Some(waiting), None) => Some(of(&waiting.reason, &waiting.message, None)),
            (None, None) => None,
        }
    }

    /// The exit code of a container that has failed.
    pub fn exit_code(&self, container: &str) -> Option<i32> {
        self.end(container).map(|end| end.exit_code).filter(|code| *code != 0)
    }

    /// How a container has ended, if it is not running.
    pub fn end(&self, container: &str) -> Option<ContainerEnd<'_>> {
        self.statuses_of(container).find_map(|status| status.state.terminated.as_ref()).map(Terminated::end)
    }

    /// Whether a container waits to be started, for the first time or again.
    pub fn is_waiting(&self, container: &str) -> bool {
        self.statuses_of(container).any(|status| status.state.waiting.is_some())
    }

    /// Whether another container has failed than this one.
    pub fn has_failed_beside(&self, container: &str) -> bool {
        let ends = self.containers().filter(|status| status.name != container);
        ends.filter_map(|status| status.state.terminated.as_ref()).any(|ended| ended.exit_code != 0)
    }

    /// Why a container has failed that is not running; empty if it has not.
    pub fn failure_of(&self, container: &str) -> Cause<'_> {
        let ended = self.statuses_of(container).find_map(|status| status.state.terminated.as_ref());
        let failed = ended.filter(|ended| ended.exit_code != 0);
        failed.map(|failed| Cause { reason: &failed.reason, message: &failed.message }).unwrap_or_default()
    }

    /// How a container ended before the kubelet restarted it last.
    pub fn last_end(&self, container: &str) -> Option<ContainerEnd<'_>> {
        self.statuses_of(container).find_map(|status| status.last_state.terminated.as_ref()).map(Terminated::end)
    }

    /// How often the kubelet has restarted a container.
    pub fn restart_count(&self, container: &str) -> u32 {
        self.statuses_of(container).map(|status| status.restart_count).sum()
    }

    fn statuses_of<'p>(&'p self, container: &str) -> impl Iterator<Item = &'p ContainerStatus> {
        self.status.container_statuses.iter().filter(move |status| status.name == container)
    }

    fn condition(&self, condition_type: &str) -> Option<&PodCondition> {
        self.status.conditions.iter().find(|condition| condition.condition_type == condition_type)
    }

    fn containers(&self) -> impl Iterator<Item = &ContainerStatus> {
        self.status.init_container_statuses.iter().chain(&self.status.container_statuses)
    }

    /// A container that waits for something other than its normal start.
    fn waiting_problem(&self) -> Option<&Waiting> {
        // The kubelet can leave a container `waiting` in a Pod that has ended.
        if matches!(self.phase(), PodPhase::Succeeded | PodPhase::Failed) {
            return None;
        }
        let mut waiting = self.containers().filter_map(|status| status.state.waiting.as_ref());
        waiting.find(|waiting| !NORMAL_WAITING_REASONS.contains(&waiting.reason.as_str()))
    }

    fn unscheduled(&self) -> Option<Cause<'_>> {
        let condition = self.condition("PodScheduled").filter(|condition| condition.status == "False")?;
        Some(Cause { reason: &condition.reason, message: &condition.message })
    }

    /// The reason of the Pod itself, which an evicted one has, or else that of its first failed container.
    fn failure(&self) -> Cause<'_> {
        if !self.status.reason.is_empty() {
            return Cause { reason: &self.status.reason, message: &self.status.message };
        }
        let mut terminated = self.containers().filter_map(|status| status.state.terminated.as_ref());
        let failed = terminated.find(|terminated| terminated.exit_code != 0);
        failed.map(|failed| Cause { reason: &failed.reason, message: &failed.message }).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{Cause, ObservedPod};

    /// A Pod's status, and what follows from it.
    struct Case {
        status: &'static str,
        display_status: &'static str,
        cause: Cause<'static>,
    }

    const NO_CAUSE: Cause<'static> = Cause { reason: "", message: "" };

    const CASES: &[Case] = &[
        Case { status: "{}", display_status: "Pending", cause: NO_CAUSE },
        Case { status: "{phase: Running}", display_status: "Running", cause: NO_CAUSE },
        Case { status: "{phase: Unknown}", display_status: "Unknown", cause: NO_CAUSE },
        Case {
            status: "{phase: Pending, containerStatuses: [
              {name: pytorch, state: {waiting: {reason: ContainerCreating}}}]}",
            display_status: "Pending",
            cause: NO_CAUSE,
        },
        Case {
            status: "{phase: Pending, containerStatuses: [
              {name: pytorch, state: {waiting: {reason: ImagePullBackOff, message: no such image}}}]}",
            display_status: "ImagePullBackOff",
            cause: Cause { reason: "ImagePullBackOff", message: "no such image" },
        },
        Case {
            status: "{phase: Running, containerStatuses: [
              {name: pytorch, state: {waiting: {reason: CrashLoopBackOff}}}]}",
            display_status: "CrashLoopBackOff",
            cause: Cause { reason: "CrashLoopBackOff", message: "" },
        },
        Case {
            status: "{phase: Pending, initContainerStatuses: [
              {name: proxy, state: {waiting: {reason: ErrImagePull}}}]}",
            display_status: "ErrImagePull",
            cause: Cause { reason: "ErrImagePull", message: "" },
        },
        Case {
            status: "{phase: Pending, conditions: [
              {type: PodScheduled, status: 'False', reason: Unschedulable, message: 0/3 nodes}]}",
            display_status: "Pending",
            cause: Cause { reason: "Unschedulable", message: "0/3 nodes" },
        },
        Case {
            status: "{phase: Failed, containerStatuses: [
              {name: pytorch, state: {terminated: {exitCode: 137, reason: OOMKilled, message: m}}}]}",
            display_status: "Failed",
            cause: Cause { reason: "OOMKilled", message: "m" },
        },
        Case {
            status: "{phase: Failed, reason: Evicted, message: disk pressure}",
            display_status: "Failed",
            cause: Cause { reason: "Evicted", message: "disk pressure" },
        },
    ];

    #[test]
    fn a_pod_has_a_display_status_and_a_cause() -> Result<(), Box<dyn std::error::Error>> {
        for Case { status, display_status, cause } in CASES {
            let pod: ObservedPod = serde_saphyr::from_str(&format!("{{metadata: {{name: a}}, status: {status}}}"))?;
            assert_eq!((pod.display_status(), pod.cause()), (*display_status, *cause), "{status}");
        }
        Ok(())
    }

    #[test]
    fn the_trouble_of_a_pod_names_the_container_and_why_it_ended() -> Result<(), Box<dyn std::error::Error>> {
        let cases = [
            ("{phase: Running, containerStatuses: [{name: model, ready: true}]}", None),
            ("{phase: Running, containerStatuses: [{name: model, state: {running: {}}}]}", None),
            (
                "{phase: Pending, containerStatuses: [{name: model, state: {waiting: {reason: ErrImagePull, message: no}}}]}",
                Some((Some("model"), "ErrImagePull", "no", None)),
            ),
            (
                "{phase: Running, containerStatuses: [{name: model, state: {running: {}}, \
                  lastState: {terminated: {exitCode: 137, reason: OOMKilled}}}]}",
                Some((Some("model"), "OOMKilled", "", Some(137))),
            ),
            (
                "{phase: Pending, initContainerStatuses: [{name: model-download, \
                  state: {waiting: {reason: CrashLoopBackOff, message: back-off}}, \
                  lastState: {terminated: {exitCode: 124, reason: Error, message: no such repository}}}]}",
                Some((Some("model-download"), "CrashLoopBackOff", "no such repository", Some(124))),
            ),
            (
                "{phase: Pending, conditions: [{type: PodScheduled, status: 'False', reason: Unschedulable, message: m}]}",
                Some((None, "Unschedulable", "m", None)),
            ),
            ("{phase: Failed, reason: Evicted, message: disk}", Some((None, "Evicted", "disk", None))),
        ];
        for (status, expected) in cases {
            let pod: ObservedPod = serde_saphyr::from_str(&format!("{{metadata: {{name: a}}, status: {status}}}"))?;
            let found = pod.trouble().map(|it| (it.container, it.reason, it.message, it.exit_code));
            assert_eq!(found, expected, "{status}");
        }
        Ok(())
    }

    #[test]
    fn exit_code_and_restarts_are_those_of_one_container() -> Result<(), Box<dyn std::error::Error>> {
        let pod: ObservedPod = serde_saphyr::from_str(
            "{metadata: {name: a}, status: {containerStatuses: [
              {name: proxy, restartCount: 7, state: {terminated: {exitCode: 1}}},
              {name: pytorch, restartCount: 2, state: {terminated: {exitCode: 143}}},
              {name: tensorflow, restartCount: 0, state: {terminated: {exitCode: 0}}}]}}",
        )?;
        assert_eq!((pod.restart_count("pytorch"), pod.exit_code("pytorch")), (2, Some(143)));
        assert_eq!((pod.restart_count("tensorflow"), pod.exit_code("tensorflow")), (0, None));
        Ok(())
    }
}
