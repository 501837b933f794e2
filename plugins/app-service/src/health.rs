//! How an application is, judged by its live Deployment. It only reads what the Deployment controller reported.

use pilothouse_sdk::{Condition, Kind};
use serde::Deserialize;

/// The few fields of a live Deployment that tell how it is; reading them all would cost more than the rest of a reconcile.
#[derive(Debug, Default, Deserialize)]
pub struct LiveDeployment {
    metadata: Metadata,
    /// What the Deployment controller reported; zeros before it did.
    #[serde(default)]
    pub status: DeploymentStatus,
}

impl Kind for LiveDeployment {
    const API_VERSION: &'static str = "apps/v1";
    const KIND: &'static str = "Deployment";
}

#[derive(Debug, Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    generation: i64,
}

/// The counts and conditions of a Deployment.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct DeploymentStatus {
    observed_generation: i64,
    /// How many Pods exist.
    pub replicas: i32,
    updated_replicas: i32,
    available_replicas: i32,
    /// How many Pods are ready.
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

/// Where a rollout is.
enum Rollout<'d> {
    Done,
    UnderWay,
    Stuck(&'d DeploymentCondition),
}

/// The conditions of an application that wants so many replicas.
pub fn conditions(live: &LiveDeployment, wanted: i32) -> [Condition; 4] {
    let rollout = live.rollout(wanted);
    let (reason, message) = match rollout {
        Rollout::Done => ("Available", live.counted(wanted)),
        Rollout::UnderWay => ("Progressing", live.counted(wanted)),
        Rollout::Stuck(fault) => (fault.reason.as_str(), fault.message.clone()),
    };
    let available = live.status.available_replicas;
    let minimum = if available > 0 { "ReplicasAvailable" } else { "NoReplicasAvailable" };
    [
        Condition::when("Ready", matches!(rollout, Rollout::Done), reason, &message),
        Condition::when("Progressing", matches!(rollout, Rollout::UnderWay), reason, &message),
        Condition::when("Degraded", matches!(rollout, Rollout::Stuck(_)), reason, &message),
        Condition::when("Available", available > 0, minimum, format!("{available} replicas available")),
    ]
}

impl LiveDeployment {
    fn rollout(&self, wanted: i32) -> Rollout<'_> {
        if self.is_observed() && self.fewest() >= wanted {
            return Rollout::Done;
        }
        match self.fault() {
            Some(fault) => Rollout::Stuck(fault),
            None => Rollout::UnderWay,
        }
    }

    /// Whether the counts are about the current spec.
    fn is_observed(&self) -> bool {
        self.status.observed_generation >= self.metadata.generation
    }

    /// Replicas that are both ready and of the current revision, at least: every one of an older revision may be ready.
    fn fewest(&self) -> i32 {
        let old = self.status.replicas - self.status.updated_replicas;
        self.status.ready_replicas - old
    }

    fn counted(&self, wanted: i32) -> String {
        let status = &self.status;
        if status.ready_replicas < wanted {
            format!("{} of {wanted} replicas ready", status.ready_replicas)
        } else if status.updated_replicas < wanted {
            format!("{} of {wanted} replicas updated", status.updated_replicas)
        } else if self.is_observed() && self.fewest() < wanted {
            format!("{} old replicas still run", status.replicas - status.updated_replicas)
        } else if self.is_observed() {
            format!("{} of {wanted} replicas ready", status.ready_replicas)
        } else {
            "the Deployment's change is not rolled out yet".to_owned()
        }
    }

    /// What keeps the Deployment from getting on, as it says itself.
    fn fault(&self) -> Option<&DeploymentCondition> {
        let is_fault = |c: &&DeploymentCondition| match c.condition_type.as_str() {
            "Progressing" => c.status == "False" && !c.reason.is_empty(),
            "ReplicaFailure" => c.status == "True" && !c.reason.is_empty(),
            _ => false,
        };
        self.status.conditions.iter().find(is_fault)
    }
}
