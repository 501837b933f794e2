//! The replicas of a job as they are: the observed Pods, matched with the last status. It decides nothing.

use crate::api::{ReplicaType, TrainingJobStatus, WorkerStatus};
use crate::disruption::is_disrupted;
use crate::fingerprint::is_of_other_spec;
use crate::job::{Job, ReplicaId};
use pilothouse_pods::observed_pod::{ObservedPod, PodPhase};
use std::collections::{BTreeMap, BTreeSet};

/// The state of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplicaState {
    /// It has no Pod.
    Missing,
    /// Its Pod is being deleted, or is about to be.
    Terminating,
    /// Its Pod does not run yet.
    Pending,
    /// Its Pod runs.
    Running,
    /// It has succeeded, whether its Pod still exists or not.
    Succeeded,
    /// Its Pod has failed, or the container that trains in it.
    Failed,
}

/// One member of a job.
#[derive(Debug)]
pub struct Replica<'r> {
    /// Which one it is.
    pub id: ReplicaId,
    /// The name of its Pod.
    pub pod_name: String,
    /// Its Pod, if there is one.
    pub pod: Option<&'r ObservedPod>,
    /// Its state.
    pub state: ReplicaState,
    /// Whether its Pod runs, and the container that trains in it does, whatever others in it do.
    pub runs: bool,
    /// Whether its Pod is gone or going without this plugin having removed it: somebody deleted it, or its node is gone.
    pub is_lost: bool,
    /// What the last status says of it, unless that is about a Pod which this plugin has removed.
    pub last_status: Option<&'r WorkerStatus>,
}

/// All replicas of a job, and what matters of Pods that belong to none of them.
#[derive(Debug)]
pub struct Replicas<'r> {
    /// Workers by number, then those of the other roles.
    pub all: Vec<Replica<'r>>,
    /// Pods that belong to none of them: of a worker that was scaled away.
    pub others: Vec<&'r ObservedPod>,
    /// Whether Pods that stay were made from another spec.
    pub has_pods_of_other_spec: bool,
    /// UIDs of all observed Pods.
    uids: BTreeSet<&'r str>,
}

impl Replica<'_> {
    /// Whether it has a Pod that stays.
    pub fn has_staying_pod(&self) -> bool {
        self.pod.is_some_and(|pod| !pod.is_deleting()) && self.state != ReplicaState::Terminating
    }
}

impl<'r> Replicas<'r> {
    /// Matches the observed Pods with the replicas of a job and with its last status. Pods of another spec are about to go.
    pub fn observe(job: &Job<'_>, pods: &'r [ObservedPod], old_status: &'r TrainingJobStatus) -> Self {
        Self::of(job, pods, old_status, |pod| is_of_other_spec(pod, &job.fingerprint))
    }

    /// The same while Pods of another spec still stay, for the job waits for what the new one needs.
    pub fn observe_waiting(job: &Job<'_>, pods: &'r [ObservedPod], old_status: &'r TrainingJobStatus) -> Self {
        Self::of(job, pods, old_status, |_| false)
    }

    fn of(
        job: &Job<'_>,
        pods: &'r [ObservedPod],
        old_status: &'r TrainingJobStatus,
        is_replaced: impl Fn(&ObservedPod) -> bool,
    ) -> Self {
        let retiring: BTreeSet<&str> = old_status.retiring_pods.iter().map(String::as_str).collect();
        let last_statuses = last_statuses(old_status, &retiring);
        let pods_by_name: BTreeMap<&str, &ObservedPod> = pods.iter().map(|pod| (pod.name(), pod)).collect();
        let replica = |id| {
            let pod_name = job.pod_name(id);
            let pod = pods_by_name.get(pod_name.as_str()).copied();
            let last_status = last_statuses.get(pod_name.as_str()).copied();
            let must_go = |pod: &ObservedPod| retiring.contains(pod.uid()) || is_replaced(pod);
            let state = match pod.is_some_and(must_go) {
                true => ReplicaState::Terminating,
                false => state(job, id.replica_type, pod, last_status),
            };
            let is_lost = is_lost(pod, last_status, state);
            let waits = pod.is_some_and(|pod| pod.is_waiting(job.container()));
            let runs = state == ReplicaState::Running && !waits;
            Replica { id, pod_name, pod, state, runs, is_lost, last_status }
        };
        let all: Vec<_> = job.replicas().map(replica).collect();
        let names: BTreeSet<_> = all.iter().map(|replica| replica.pod_name.as_str()).collect();
        let others = pods.iter().filter(|pod| !names.contains(pod.name())).collect();
        let mut staying = pods.iter().filter(|pod| !pod.is_deleting() && !retiring.contains(pod.uid()));
        Self {
            all,
            others,
            has_pods_of_other_spec: staying.any(|pod| is_of_other_spec(pod, &job.fingerprint)),
            uids: pods.iter().map(ObservedPod::uid).collect(),
        }
    }

    /// The workers.
    pub fn workers(&self) -> impl Iterator<Item = &Replica<'r>> {
        self.all.iter().filter(|replica| replica.id.replica_type == ReplicaType::Worker)
    }

    /// One replica.
    pub fn get(&self, id: ReplicaId) -> Option<&Replica<'r>> {
        self.all.iter().find(|replica| replica.id == id)
    }

    /// How many workers are in a state.
    pub fn count_workers(&self, state: ReplicaState) -> usize {
        self.workers().filter(|worker| worker.state == state).count()
    }

    /// Whether any replica is in a state.
    pub fn any(&self, state: ReplicaState) -> bool {
        self.all.iter().any(|replica| replica.state == state)
    }

    /// Whether all replicas have a Pod that stays, or have succeeded.
    pub fn is_complete(&self) -> bool {
        !self.any(ReplicaState::Missing) && !self.any(ReplicaState::Terminating)
    }

    /// UIDs of all observed Pods, and of those that are gone: a success does not outlive a restart of all, and one that nobody sees may come
    /// back, as when somebody takes the host's label off it and the host takes it back for its name.
    pub fn all_uids(&self) -> Vec<String> {
        let gone = self.all.iter().filter(|replica| replica.pod.is_none());
        let gone = gone.filter_map(|replica| replica.last_status?.pod_uid.as_deref());
        self.uids.iter().copied().chain(gone).map(str::to_owned).collect()
    }

    /// Those of the UIDs whose Pods exist or may come back. Once each replica has a Pod, no other one has its name.
    pub fn still_retiring(&self, uids: &[String]) -> Vec<String> {
        let may_exist = |uid: &&String| !self.is_complete() || self.uids.contains(uid.as_str());
        uids.iter().filter(may_exist).cloned().collect()
    }
}

/// What the last status says of replicas by the name of their Pod. What it says of Pods that were removed since does not
/// count: a worker that is restarted must not keep the success of its former Pod.
fn last_statuses<'r>(
    old_status: &'r TrainingJobStatus,
    retiring: &BTreeSet<&str>,
) -> BTreeMap<&'r str, &'r WorkerStatus> {
    let counts = |status: &&WorkerStatus| status.pod_uid.as_deref().is_some_and(|uid| !retiring.contains(uid));
    old_status.replica_statuses().filter(counts).map(|status| (status.pod_name.as_str(), status)).collect()
}

fn state(
    job: &Job<'_>,
    replica_type: ReplicaType,
    pod: Option<&ObservedPod>,
    last_status: Option<&WorkerStatus>,
) -> ReplicaState {
    let succeeded = last_status.filter(|last| last.status == "Succeeded");
    match pod {
        // A worker that has succeeded need not run again when its Pod is garbage-collected.
        None if succeeded.is_some() => ReplicaState::Succeeded,
        None => ReplicaState::Missing,
        // Whatever becomes of its Pod later: a container beside it fails, the node is drained.
        Some(pod) if succeeded.is_some_and(|last| last.pod_uid.as_deref() == Some(pod.uid())) => {
            ReplicaState::Succeeded
        }
        // A program that writes a checkpoint on SIGTERM and ends with 0 gives its deleted Pod the phase Succeeded. It has left
        // nevertheless.
        Some(pod) if pod.is_deleting() => ReplicaState::Terminating,
        Some(pod) => state_of_staying(job, replica_type, pod),
    }
}

/// The state of a replica whose Pod stays.
fn state_of_staying(job: &Job<'_>, replica_type: ReplicaType, pod: &ObservedPod) -> ReplicaState {
    match pod.phase() {
        // Beside a container that runs on, never starts or fails, the phase says nothing of a trainer that has ended for good.
        PodPhase::Pending | PodPhase::Running if has_ended(job, replica_type, pod) => {
            if has_ended_well(job, pod) {
                ReplicaState::Succeeded
            } else {
                ReplicaState::Failed
            }
        }
        PodPhase::Failed if has_ended_well(job, pod) && pod.has_failed_beside(job.container()) => {
            ReplicaState::Succeeded
        }
        PodPhase::Pending => ReplicaState::Pending,
        PodPhase::Running => ReplicaState::Running,
        PodPhase::Succeeded => ReplicaState::Succeeded,
        PodPhase::Failed => ReplicaState::Failed,
    }
}

/// Whether the container that trains has ended, and the kubelet does not start it again.
fn has_ended(job: &Job<'_>, replica_type: ReplicaType, pod: &ObservedPod) -> bool {
    let is_final = |exit_code: i32| match job.pod_restart_policy(replica_type) {
        "Always" => false,
        "OnFailure" => exit_code == 0,
        _ => true,
    };
    pod.end(job.container()).is_some_and(|end| is_final(end.exit_code))
}

/// Whether the container that trains has ended with success, and by itself: an eviction by the kubelet ends it without deleting the Pod.
fn has_ended_well(job: &Job<'_>, pod: &ObservedPod) -> bool {
    let is_success = pod.end(job.container()).is_some_and(|end| end.exit_code == 0);
    is_success && pod.reason().is_empty() && !is_disrupted(pod)
}

fn is_lost(pod: Option<&ObservedPod>, last_status: Option<&WorkerStatus>, state: ReplicaState) -> bool {
    let is_gone = match state {
        ReplicaState::Missing => true,
        ReplicaState::Terminating => pod.is_some_and(ObservedPod::is_deleting),
        _ => false,
    };
    is_gone && last_status.is_some()
}
