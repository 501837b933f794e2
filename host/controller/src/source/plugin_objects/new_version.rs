//! How a new version of a `Plugin` stands that does not answer all objects, in one word: for `kubectl get`, and for a metric. Pure.

use super::status::Load;
use crate::api::{NewVersion, PlanState, PlanStatus, RolloutPhase, RolloutStatus};

/// The word for what became of the source, for a version that is tried or was taken back, and for the plan of one that has to be approved; none
/// if one version answers all objects, or none is to.
pub fn new_version(load: &Load, rollout: Option<&RolloutStatus>, plan: Option<&PlanStatus>) -> Option<NewVersion> {
    if *load == Load::Suspended {
        return None;
    }
    let waits = || plan.is_some_and(|plan| plan.state != PlanState::Approved);
    match rollout.map(|rollout| rollout.phase) {
        Some(RolloutPhase::Progressing) => Some(NewVersion::Canary),
        Some(RolloutPhase::RolledBack) => Some(NewVersion::RolledBack),
        None => waits().then_some(NewVersion::AwaitingApproval),
    }
}
