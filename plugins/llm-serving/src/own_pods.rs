//! The Pods of a server: those that its workload controls. Others may have their labels, and are nothing to it.

use crate::labels;
use crate::server_spec::Identity;
use pilothouse_pods::observed_pod::ObservedPod;
use pilothouse_pods::owner::{Controllers, OwnedMetadata};
use pilothouse_pods::workload::Workload;
use pilothouse_sdk::{Error, Kind, lookup};
use serde::Deserialize;

/// The label that the controller of LeaderWorkerSets gives all that it makes: the name of the LeaderWorkerSet.
const GROUPS_NAME: &str = "leaderworkerset.sigs.k8s.io/name";

/// What stands between a workload and its Pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Between {
    /// Nothing: the Pods of a StatefulSet are its own.
    Nothing,
    /// The ReplicaSets of a Deployment.
    ReplicaSets,
    /// The StatefulSets of the LeaderWorkerSet of this name.
    StatefulSets(String),
}

/// An object between a workload and its Pods: who it is, and who controls it.
#[derive(Debug, Deserialize)]
struct Owned {
    metadata: OwnedMetadata,
}

#[derive(Deserialize)]
#[serde(transparent)]
struct ObservedReplicaSet(Owned);

impl Kind for ObservedReplicaSet {
    const API_VERSION: &'static str = "apps/v1";
    const KIND: &'static str = "ReplicaSet";
    const FIELDS: &'static [&'static str] = &["/metadata/uid", "/metadata/ownerReferences"];
}

#[derive(Deserialize)]
#[serde(transparent)]
struct OwnedStatefulSet(Owned);

impl Kind for OwnedStatefulSet {
    const API_VERSION: &'static str = "apps/v1";
    const KIND: &'static str = "StatefulSet";
    const FIELDS: &'static [&'static str] = &["/metadata/uid", "/metadata/ownerReferences"];
}

/// The Pods that a workload controls, by themselves or by what stands between. They are found by their labels and known by their owners.
///
/// # Errors
/// A lookup fails.
pub fn of(identity: &Identity<'_>, workload: &Workload, between: &Between) -> Result<Vec<ObservedPod>, Error> {
    // One that does not exist has no Pods.
    if workload.uid().is_empty() {
        return Ok(Vec::new());
    }
    let mut pods = lookup::select::<ObservedPod>(None, &labels::selector_text(identity))?;
    let controllers = controllers(identity, between, &pods)?;
    pods.retain(|pod| controllers.lead_to(workload.uid(), pod.controller()));
    Ok(pods)
}

fn controllers(identity: &Identity<'_>, between: &Between, pods: &[ObservedPod]) -> Result<Controllers, Error> {
    let between: Vec<Owned> = match between {
        Between::Nothing => Vec::new(),
        Between::ReplicaSets => {
            let sets = lookup::select::<ObservedReplicaSet>(None, &labels::selector_text(identity))?;
            sets.into_iter().map(|ObservedReplicaSet(owned)| owned).collect()
        }
        Between::StatefulSets(groups) => {
            let sets = lookup::select::<OwnedStatefulSet>(None, &format!("{GROUPS_NAME}={groups}"))?;
            sets.into_iter().map(|OwnedStatefulSet(owned)| owned).collect()
        }
    };
    let mut controllers = Controllers::default();
    for Owned { metadata } in &between {
        controllers.add(&metadata.uid, metadata.controller());
    }
    // The workers of a group are those of its leader.
    for pod in pods {
        controllers.add(pod.uid(), pod.controller());
    }
    Ok(controllers)
}
