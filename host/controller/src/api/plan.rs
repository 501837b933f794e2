//! What a new version of a plugin would do, as the status of a `Plugin` tells it while somebody has to approve it. Values only.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The reason of a condition of a `Plugin` of which a new version waits for approval.
pub const AWAITING_APPROVAL: &str = "AwaitingApproval";

/// What a new version would do, and how far its approval is.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanStatus {
    /// How far it is.
    pub state: PlanState,
    /// The new version, as its manifest says.
    pub version: String,
    /// Its digest: what `spec.rollout.approved` has to be for it to take over.
    pub digest: String,
    /// The digest of the configuration that it would have: what `spec.rollout.approvedConfig` is once somebody has approved both.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_digest: Option<String>,
    /// The generation of the `Plugin` that the plan is about. Another one may have another configuration.
    pub observed_generation: i64,
    /// When it was computed, as RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub computed_at: Option<String>,
    /// What would change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<PlanSummary>,
    /// Why it could not be computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// How far a plan is.
#[derive(JsonSchema, Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum PlanState {
    /// The version is being asked about the objects.
    Computing,
    /// The plan is there, and nobody has approved the version.
    AwaitingApproval,
    /// The plan could not be computed. The version can be approved all the same.
    Failed,
    /// Somebody has approved the version.
    Approved,
}

/// What would change.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanSummary {
    /// What would become of the objects.
    pub objects: PlannedObjects,
    /// What would become of their children.
    pub children: PlannedChildren,
    /// The objects that nobody would reconcile any more; none if the version reconciles the same kind as the one at work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_behind: Option<LeftBehind>,
    /// What would change, object by object, those that would be in error first. Without the values of fields, for more people may read this
    /// than those who may read the children.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<String>,
    /// How many more lines there would be.
    #[serde(default)]
    pub more_lines: usize,
}

/// Objects of a kind that the version at work reconciles and the new one does not. They and their children stay as they are.
#[derive(KubeSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeftBehind {
    /// Group and version.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// How many there are.
    pub objects: usize,
}

/// How many objects would change, and so on.
#[derive(KubeSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedObjects {
    /// A child, or a finalizer, would change.
    pub changed: usize,
    /// Nothing would happen.
    pub unchanged: usize,
    /// They would be in error.
    pub in_error: usize,
    /// Those of them whose status says the same today.
    pub in_error_today: usize,
    /// The host would leave them alone.
    pub left_alone: usize,
    /// They are pinned to another version.
    pub pinned: usize,
    /// They are being deleted.
    pub deleting: usize,
    /// The version was not asked about them: there are too many, or it took too long.
    pub not_asked: usize,
}

/// How many children would be created, and so on.
#[derive(KubeSchema, Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlannedChildren {
    /// Created.
    pub created: usize,
    /// Changed.
    pub changed: usize,
    /// Deleted and created anew.
    pub recreated: usize,
    /// Deleted.
    pub deleted: usize,
    /// Kept from being deleted until somebody confirms it.
    pub held_back: usize,
}
