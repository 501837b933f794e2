//! The members of a job as they are: what is live, brought together with what the status remembers. It decides nothing.

use crate::api::{RestartScope, TrainingJobStatus, WorkerStatus};
use crate::fingerprint::Match;
use crate::job::{Job, Role};
use crate::live::{LivePod, PodPhase};
use std::collections::{BTreeMap, BTreeSet};

/// How a member is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has no Pod.
    Missing,
    /// Its Pod is on its way out, or shall be.
    Leaving,
    /// Its Pod does not run yet.
    Pending,
    /// Its Pod runs.
    Running,
    /// It has succeeded, whether its Pod is still there or not.
    Succeeded,
    /// Its Pod has failed.
    Failed,
}

/// A worker or parameter server.
#[derive(Debug)]
pub struct Member<'r> {
    /// What it does.
    pub role: Role,
    /// Its number among those of its role.
    pub index: u32,
    /// The name of its Pod.
    pub name: String,
    /// Its Pod.
    pub pod: Option<&'r LivePod>,
    /// How it is.
    pub state: State,
    /// Whether its Pod went without anybody here having wanted it.
    pub is_lost: bool,
    /// What the status says of it, where that is about the Pod that is or was last in its place.
    pub known: Option<&'r WorkerStatus>,
}

/// All members, and the Pods that belong to none.
#[derive(Debug)]
pub struct Group<'r> {
    /// Workers by number, then parameter servers.
    pub members: Vec<Member<'r>>,
    /// What a retry restarts. Pods of different specs or forms cannot be told apart one by one, so then it is the job.
    pub scope: RestartScope,
    /// Whether there are Pods that were made for another spec, and are not on their way out yet.
    pub has_outdated: bool,
    /// Whether there are Pods that this version of the plugin would make in another form.
    pub has_other_form: bool,
    /// Whether there are Pods that belong to no member: the job was scaled down.
    pub has_surplus: bool,
    /// UIDs of all live Pods.
    uids: BTreeSet<&'r str>,
}

impl<'r> Group<'r> {
    /// Brings live Pods and memory together.
    pub fn observe(job: &Job<'_>, pods: &'r [LivePod], memory: &'r TrainingJobStatus) -> Self {
        let retired: BTreeSet<&str> = memory.retiring_pods.iter().map(String::as_str).collect();
        let known: BTreeMap<&str, &WorkerStatus> =
            memory.members().map(|status| (status.pod_name.as_str(), status)).collect();
        let mut by_name: BTreeMap<&str, &LivePod> = pods.iter().map(|pod| (pod.name(), pod)).collect();
        let mut member = |(role, index)| {
            let name = job.pod_name(role, index);
            let pod = by_name.remove(name.as_str());
            let known = known.get(name.as_str()).copied();
            let known = known.filter(|known| known.pod_uid.as_deref().is_some_and(|uid| !retired.contains(uid)));
            let leaving =
                pod.is_some_and(|pod| retired.contains(pod.uid()) || pod.matches(&job.fingerprint) == Match::OtherSpec);
            let state = state(pod, known, leaving);
            Member { role, index, name, pod, state, is_lost: is_lost(pod, known, state), known }
        };
        let members: Vec<_> = job.members().map(&mut member).collect();
        let staying = || pods.iter().filter(|pod| !pod.is_deleting() && !retired.contains(pod.uid()));
        let form = |form| staying().any(|pod| pod.matches(&job.fingerprint) == form);
        let (has_outdated, has_other_form) = (form(Match::OtherSpec), form(Match::OtherForm));
        let mixed = pods.iter().any(|pod| pod.matches(&job.fingerprint) != Match::Same);
        Self {
            members,
            scope: if mixed { RestartScope::Job } else { job.restart_scope() },
            has_outdated,
            has_other_form,
            has_surplus: by_name.values().any(|pod| !pod.is_deleting()),
            uids: pods.iter().map(LivePod::uid).collect(),
        }
    }

    /// The workers.
    pub fn workers(&self) -> impl Iterator<Item = &Member<'r>> {
        self.members.iter().filter(|member| member.role == Role::Worker)
    }

    /// How many workers are in a state.
    pub fn count(&self, state: State) -> usize {
        self.workers().filter(|worker| worker.state == state).count()
    }

    /// Whether a member is in a state.
    pub fn any(&self, state: State) -> bool {
        self.members.iter().any(|member| member.state == state)
    }

    /// Whether all members have a Pod that stays.
    pub fn is_complete(&self) -> bool {
        self.members.iter().all(|member| !matches!(member.state, State::Missing | State::Leaving))
    }

    /// UIDs of all live Pods.
    pub fn all_uids(&self) -> Vec<String> {
        self.uids.iter().map(|uid| (*uid).to_owned()).collect()
    }

    /// Those of the UIDs whose Pods are still there.
    pub fn still_there(&self, uids: &[String]) -> Vec<String> {
        uids.iter().filter(|uid| self.uids.contains(uid.as_str())).cloned().collect()
    }
}

fn state(pod: Option<&LivePod>, known: Option<&WorkerStatus>, leaving: bool) -> State {
    match pod {
        // A worker that has done its part stays done, also when its Pod is collected.
        None if known.is_some_and(|known| known.status == "Succeeded") => State::Succeeded,
        None => State::Missing,
        Some(_) if leaving => State::Leaving,
        Some(pod) => match pod.phase() {
            PodPhase::Succeeded => State::Succeeded,
            _ if pod.is_deleting() => State::Leaving,
            PodPhase::Pending => State::Pending,
            PodPhase::Running => State::Running,
            PodPhase::Failed => State::Failed,
        },
    }
}

/// Whether a Pod that the status knows is gone or going, and nobody here sent it away.
fn is_lost(pod: Option<&LivePod>, known: Option<&WorkerStatus>, state: State) -> bool {
    let gone = match state {
        State::Missing => true,
        State::Leaving => pod.is_some_and(LivePod::is_deleting),
        _ => false,
    };
    gone && known.is_some()
}
