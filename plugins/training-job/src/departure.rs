//! Pods that leave a job: which are to go, and which have gone or are going. Pure.
//!
//! The plugin says which Pods are to exist, and the host deletes the others, or not yet: it lacks the right, another write has failed, somebody
//! has to confirm so many deletes. No answer tells the plugin so, but the Pods do. So what is decided goes into the status, and the Event comes
//! when a Pod is seen being deleted, or is not seen any more. Nor could the host hold the Event back together with the delete: it does not know
//! which Event is about which child, and one that it held back would be lost with the next status.

use crate::api::{LeavingPod, TrainingJobStatus};
use pilothouse_pods::observed_pod::ObservedPod;
use std::collections::{BTreeMap, BTreeSet};

/// What became of the Pods of which the new status no longer says how they are.
pub struct Departures {
    /// Those that are still to go.
    pub leaving: Vec<LeavingPod>,
    /// The names of those that are gone or going.
    pub gone: Vec<String>,
}

impl Departures {
    /// Compares what the last status says with what the new one does, and with the Pods that exist.
    pub fn of(old: &TrainingJobStatus, new: &TrainingJobStatus, pods: &[ObservedPod]) -> Self {
        let stays: BTreeSet<&str> = new.replica_statuses().filter_map(|status| status.pod_uid.as_deref()).collect();
        let pods: BTreeMap<&str, &ObservedPod> = pods.iter().map(|pod| (pod.uid(), pod)).collect();
        let of_replicas = old.replica_statuses().filter_map(|status| {
            Some(LeavingPod { pod_name: status.pod_name.clone(), pod_uid: status.pod_uid.clone()? })
        });
        let known = of_replicas.chain(old.leaving_pods.iter().cloned());
        let left = known.filter(|pod| !stays.contains(pod.pod_uid.as_str()));
        let is_there = |pod: &LeavingPod| pods.get(pod.pod_uid.as_str()).is_some_and(|pod| !pod.is_deleting());
        let (leaving, gone): (Vec<_>, Vec<_>) = left.partition(is_there);
        let gone = gone.into_iter().map(|pod| pod.pod_name).collect();
        // At the end, Pods go or stay as the policy says, and nothing more is told of them.
        Self { leaving: if new.is_finished() { Vec::new() } else { leaving }, gone }
    }
}
