//! The conditions of an application, judged by the observed Deployment. It only reads what the Deployment controller
//! reported.

use pilothouse_sdk::{Condition, Kind};
use serde::Deserialize;

/// The few fields of an observed Deployment that tell its health. Reading the whole Deployment would cost more than the
/// rest of a reconcile.
#[derive(Debug, Default, Deserialize)]
pub struct ObservedDeployment {
    metadata: Metadata,
    /// What the Deployment controller reported; zeros before its first report.
    #[serde(default)]
    pub status: DeploymentStatus,
}

impl Kind for ObservedDeployment {
    const API_VERSION: &'static str = "apps/v1";
    const KIND: &'static str = "Deployment";
}

#[derive(Debug, Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    generation: i64,
}

/// The replica counts and conditions of a Deployment.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeploymentStatus {
    observed_generation: i64,
    /// How many Pods exist, of all revisions.
    pub replicas: i32,
    updated_replicas: i32,
    available_replicas: i32,
    /// How many Pods are ready, of all revisions.
    pub ready_replicas: i32,
    conditions: Vec<DeploymentCondition>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct DeploymentCondition {
    #[serde(rename = "type")]
    condition_type: String,
    status: String,
    reason: String,
    message: String,
}

/// How far a rollout is.
enum Rollout<'d> {
    Complete,
    Progressing,
    Failed(&'d DeploymentCondition),
}

/// The conditions of an application that asks for `desired` replicas.
pub fn conditions(deployment: &ObservedDeployment, desired: i32) -> [Condition; 4] {
    let rollout = deployment.rollout(desired);
    let (reason, message) = match rollout {
        // During a rollout, surge Pods and Pods of the old revision may be ready as well. They are not among the desired
        // replicas, so they are not counted.
        Rollout::Complete => ("Available", format!("{desired} of {desired} replicas ready")),
        Rollout::Progressing => ("Progressing", deployment.progress(desired)),
        Rollout::Failed(failure) => (failure.reason.as_str(), failure.message.clone()),
    };
    let available = deployment.status.available_replicas;
    let available_reason = if available > 0 { "ReplicasAvailable" } else { "NoReplicasAvailable" };
    [
        Condition::when("Ready", matches!(rollout, Rollout::Complete), reason, &message),
        Condition::when("Progressing", matches!(rollout, Rollout::Progressing), reason, &message),
        Condition::when("Degraded", matches!(rollout, Rollout::Failed(_)), reason, &message),
        Condition::when("Available", available > 0, available_reason, format!("{available} replicas available")),
    ]
}

impl ObservedDeployment {
    fn rollout(&self, desired: i32) -> Rollout<'_> {
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
    fn progress(&self, desired: i32) -> String {
        let DeploymentStatus { ready_replicas: ready, updated_replicas: updated, .. } = self.status;
        if ready < desired {
            format!("{ready} of {desired} replicas ready")
        } else if updated < desired {
            format!("{updated} of {desired} replicas updated")
        } else if self.is_spec_observed() {
            format!("{} old replicas still run", self.old_replicas())
        } else {
            "the Deployment's change is not rolled out yet".to_owned()
        }
    }

    /// The condition by which the Deployment controller says that the rollout is stuck.
    fn failure(&self) -> Option<&DeploymentCondition> {
        let is_failure = |condition: &&DeploymentCondition| match condition.condition_type.as_str() {
            "Progressing" => condition.status == "False" && !condition.reason.is_empty(),
            "ReplicaFailure" => condition.status == "True" && !condition.reason.is_empty(),
            _ => false,
        };
        self.status.conditions.iter().find(is_failure)
    }
}
