//! The replicas of a job as they are: the observed Pods, matched with the last status. It decides nothing.

use crate::api::{RestartScope, TrainingJobStatus, WorkerStatus};
use crate::fingerprint::{TemplateMatch, template_match};
use crate::job::{Job, ReplicaId, ReplicaType};
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
    /// Its Pod has failed.
    Failed,
}

/// A worker or parameter server.
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
    /// Whether its Pod is gone or going without this plugin having removed it: somebody deleted it, or its node is gone.
    pub is_lost: bool,
    /// What the last status says of it, unless that is about a Pod which this plugin has removed.
    pub last_status: Option<&'r WorkerStatus>,
}

/// All replicas of a job, and what matters of Pods that belong to none of them.
#[derive(Debug)]
pub struct Replicas<'r> {
    /// Workers by number, then parameter servers.
    pub all: Vec<Replica<'r>>,
    /// What a retry restarts.
    pub restart_scope: RestartScope,
    /// Whether Pods that stay were made from another spec.
    pub has_pods_of_other_spec: bool,
    /// Whether Pods that stay were made by another template version.
    pub has_pods_of_other_template_version: bool,
    /// Whether Pods exist that belong to no replica, since the job was scaled down.
    pub has_surplus_pods: bool,
    /// UIDs of all observed Pods.
    uids: BTreeSet<&'r str>,
}

impl<'r> Replicas<'r> {
    /// Matches the observed Pods with the replicas of a job and with its last status.
    pub fn observe(job: &Job<'_>, pods: &'r [ObservedPod], old_status: &'r TrainingJobStatus) -> Self {
        let retiring: BTreeSet<&str> = old_status.retiring_pods.iter().map(String::as_str).collect();
        let last_statuses = last_statuses(old_status, &retiring);
        let mut pods_by_name: BTreeMap<&str, &ObservedPod> = pods.iter().map(|pod| (pod.name(), pod)).collect();
        let replica = |id| {
            let pod_name = job.pod_name(id);
            let pod = pods_by_name.remove(pod_name.as_str());
            let last_status = last_statuses.get(pod_name.as_str()).copied();
            let must_go = |pod: &ObservedPod| {
                retiring.contains(pod.uid()) || template_match(pod, &job.fingerprint) == TemplateMatch::OtherSpec
            };
            let state = if pod.is_some_and(must_go) { ReplicaState::Terminating } else { state(pod, last_status) };
            Replica { id, pod_name, pod, state, is_lost: is_lost(pod, last_status, state), last_status }
        };
        let all = job.replicas().map(replica).collect();
        let staying = || pods.iter().filter(|pod| !pod.is_deleting() && !retiring.contains(pod.uid()));
        let any_staying = |wanted| staying().any(|pod| template_match(pod, &job.fingerprint) == wanted);
        Self {
            all,
            restart_scope: restart_scope(job, pods),
            has_pods_of_other_spec: any_staying(TemplateMatch::OtherSpec),
            has_pods_of_other_template_version: any_staying(TemplateMatch::OtherTemplateVersion),
            has_surplus_pods: pods_by_name.values().any(|pod| !pod.is_deleting()),
            uids: pods.iter().map(ObservedPod::uid).collect(),
        }
    }

    /// The workers.
    pub fn workers(&self) -> impl Iterator<Item = &Replica<'r>> {
        self.all.iter().filter(|replica| replica.id.replica_type == ReplicaType::Worker)
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

    /// UIDs of all observed Pods.
    pub fn all_uids(&self) -> Vec<String> {
        self.uids.iter().map(|uid| (*uid).to_owned()).collect()
    }

    /// Those of the UIDs whose Pods still exist.
    pub fn still_existing(&self, uids: &[String]) -> Vec<String> {
        uids.iter().filter(|uid| self.uids.contains(uid.as_str())).cloned().collect()
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

/// What a retry restarts. While Pods of several templates exist, it is always the whole job: the Pods of another template
/// cannot be returned as they are, so they cannot be kept while one Pod is replaced.
fn restart_scope(job: &Job<'_>, pods: &[ObservedPod]) -> RestartScope {
    let is_current = |pod: &ObservedPod| template_match(pod, &job.fingerprint) == TemplateMatch::Current;
    if pods.iter().all(is_current) { job.restart_scope() } else { RestartScope::Job }
}

fn state(pod: Option<&ObservedPod>, last_status: Option<&WorkerStatus>) -> ReplicaState {
    match pod {
        // A worker that has succeeded need not run again when its Pod is garbage-collected.
        None if last_status.is_some_and(|last| last.status == "Succeeded") => ReplicaState::Succeeded,
        None => ReplicaState::Missing,
        Some(pod) => match pod.phase() {
            PodPhase::Succeeded => ReplicaState::Succeeded,
            _ if pod.is_deleting() => ReplicaState::Terminating,
            PodPhase::Pending => ReplicaState::Pending,
            PodPhase::Running => ReplicaState::Running,
            PodPhase::Failed => ReplicaState::Failed,
        },
    }
}

fn is_lost(pod: Option<&ObservedPod>, last_status: Option<&WorkerStatus>, state: ReplicaState) -> bool {
    let is_gone = match state {
        ReplicaState::Missing => true,
        ReplicaState::Terminating => pod.is_some_and(ObservedPod::is_deleting),
        _ => false,
    };
    is_gone && last_status.is_some()
}
