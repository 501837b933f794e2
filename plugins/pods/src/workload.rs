//! How far the rollout of a Deployment or StatefulSet is, judged by what its controller reported, and the conditions that follow
//! from it. It looks at no Pod.

use pilothouse_sdk::{Condition, Kind};
use serde::Deserialize;

/// The few fields of an observed Deployment or StatefulSet that tell how far its rollout is. Reading the whole object would cost
/// more than the rest of a reconcile.
#[derive(Debug, Default, Deserialize)]
pub struct Workload {
    metadata: Metadata,
    /// What the workload's controller reported; zeros before its first report.
    #[serde(default)]
    pub status: WorkloadStatus,
}

/// An observed Deployment.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct ObservedDeployment(pub Workload);

impl Kind for ObservedDeployment {
    const API_VERSION: &'static str = "apps/v1";
    const KIND: &'static str = "Deployment";
}

/// An observed StatefulSet.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct ObservedStatefulSet(pub Workload);

impl Kind for ObservedStatefulSet {
    const API_VERSION: &'static str = "apps/v1";
    const KIND: &'static str = "StatefulSet";
}

#[derive(Debug, Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    uid: String,
    #[serde(default)]
    generation: i64,
}

/// The replica counts and conditions of a workload.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WorkloadStatus {
    observed_generation: i64,
    /// How many Pods exist, of all revisions.
    pub replicas: i32,
    updated_replicas: i32,
    available_replicas: i32,
    /// How many Pods are ready, of all revisions.
    pub ready_replicas: i32,
    conditions: Vec<WorkloadCondition>,
}

/// What the workload's controller says of one aspect.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct WorkloadCondition {
    #[serde(rename = "type")]
    condition_type: String,
    status: String,
    /// One CamelCase word.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

/// How far a rollout is.
#[derive(Clone, Copy, Debug)]
pub enum Rollout<'w> {
    /// All desired replicas are of the current revision and ready.
    Complete,
    /// It goes on.
    Progressing,
    /// The workload's controller says that it is stuck.
    Failed(&'w WorkloadCondition),
}

/// The conditions of an application that asks for `desired` replicas.
pub fn conditions(workload: &Workload, desired: i32) -> [Condition; 4] {
    let rollout = workload.rollout(desired);
    let (reason, message) = match rollout {
        // During a rollout, surge Pods and Pods of the old revision may be ready as well. They are not among the desired
        // replicas, so they are not counted.
        Rollout::Complete => ("Available", format!("{desired} of {desired} replicas ready")),
        Rollout::Progressing => match workload.paused() {
            Some(paused) => (paused.reason.as_str(), format!("{}; {}", workload.progress(desired), paused.message)),
            None => ("Progressing", workload.progress(desired)),
        },
        Rollout::Failed(failure) => (failure.reason.as_str(), failure.message.clone()),
    };
    let available = workload.status.available_replicas;
    let available_reason = if available > 0 { "ReplicasAvailable" } else { "NoReplicasAvailable" };
    [
        Condition::when("Ready", matches!(rollout, Rollout::Complete), reason, &message),
        Condition::when("Progressing", matches!(rollout, Rollout::Progressing), reason, &message),
        Condition::when("Degraded", matches!(rollout, Rollout::Failed(_)), reason, &message),
        Condition::when("Available", available > 0, available_reason, format!("{available} replicas available")),
    ]
}

impl Workload {
    /// Its UID; empty if it does not exist.
    pub fn uid(&self) -> &str {
        &self.metadata.uid
    }

    /// As of a LeaderWorkerSet, whose replicas are groups of Pods: one that is ready is available, and its conditions tell no failure.
    pub fn of_groups(mut self) -> Self {
        self.status.available_replicas = self.status.ready_replicas;
        self.status.conditions.clear();
        self
    }

    /// How far the rollout to so many replicas is.
    pub fn rollout(&self, desired: i32) -> Rollout<'_> {
        if self.is_spec_observed() && self.min_ready_updated_replicas() >= desired {
            return Rollout::Complete;
        }
        match self.failure() {
            Some(failure) => Rollout::Failed(failure),
            None => Rollout::Progressing,
        }
    }

    /// Whether the replica counts are about the current spec.
    fn is_spec_observed(&self) -> bool {
        self.status.observed_generation >= self.metadata.generation
    }

    /// How many replicas of the current revision are ready, at the least. The status counts ready replicas over all
    /// revisions, so every replica of an old revision is taken to be a ready one.
    fn min_ready_updated_replicas(&self) -> i32 {
        self.status.ready_replicas - self.old_replicas()
    }

    fn old_replicas(&self) -> i32 {
        self.status.replicas - self.status.updated_replicas
    }

    /// What an incomplete rollout waits for. A count of ready or updated replicas is only told below the desired number, so
    /// it never exceeds it.
    pub fn progress(&self, desired: i32) -> String {
        let WorkloadStatus { ready_replicas: ready, updated_replicas: updated, .. } = self.status;
        if ready < desired {
            format!("{ready} of {desired} replicas ready")
        } else if updated < desired {
            format!("{updated} of {desired} replicas updated")
        } else if self.is_spec_observed() {
            format!("{} old replicas still run", self.old_replicas())
        } else {
            "the change is not rolled out yet".to_owned()
        }
    }

    /// The condition by which the workload's controller says that somebody has paused the rollout.
    fn paused(&self) -> Option<&WorkloadCondition> {
        self.status.conditions.iter().find(|it| it.condition_type == "Progressing" && it.reason == "DeploymentPaused")
    }

    /// The condition by which the workload's controller says that the rollout is stuck.
    fn failure(&self) -> Option<&WorkloadCondition> {
        let is_failure = |condition: &&WorkloadCondition| match condition.condition_type.as_str() {
            "Progressing" => condition.status == "False" && !condition.reason.is_empty(),
            "ReplicaFailure" => condition.status == "True" && !condition.reason.is_empty(),
            _ => false,
        };
        self.status.conditions.iter().find(is_failure)
    }
}
