//! The conditions of a server: how far its rollout is, what is wrong with its Pods, and what the cluster lacks. Pure.

use crate::config::GpuConfig;
use crate::server::Server;
use crate::surroundings::MissingKind;
use crate::trouble::PodsTrouble;
use pilothouse_pods::transition::Announced;
use pilothouse_pods::workload::{Rollout, Workload, conditions};
use pilothouse_sdk::Condition;

/// The condition about the Pods' own trouble.
pub const PODS_HEALTHY: &str = "PodsHealthy";

/// The reason while the cluster lacks a kind.
pub const KIND_NOT_INSTALLED: &str = "KindNotInstalled";

/// The reason while an old workload has to go before the new one comes.
pub const AWAITING_REMOVAL: &str = "AwaitingRemoval";

/// The reason of a rollout that is stuck, as Deployments have it.
const DEADLINE_EXCEEDED: &str = "ProgressDeadlineExceeded";

/// The conditions whose changes are Events.
pub const ANNOUNCED: [Announced<'_>; 5] = [
    Announced { condition_type: "Ready", on_true: Some("ModelServerReady"), on_false: Some("ModelServerNotReady") },
    Announced { condition_type: PODS_HEALTHY, on_true: None, on_false: None },
    Announced { condition_type: "GpuTypeKnown", on_true: None, on_false: None },
    Announced { condition_type: "KindsInstalled", on_true: None, on_false: None },
    Announced { condition_type: "DisruptionAllowed", on_true: None, on_false: None },
];

/// Whether all desired Pods of the current revision are ready.
pub fn is_complete(workload: &Workload, desired: i32) -> bool {
    matches!(workload.rollout(desired), Rollout::Complete)
}

/// The conditions about a server's workload. The Pods' own trouble says more than how many of them are missing, so it becomes the
/// reason of `Ready`.
pub fn of_workload(workload: &Workload, desired: i32, trouble: Option<&PodsTrouble>) -> Vec<Condition> {
    let mut all: Vec<_> = conditions(workload, desired).into();
    if let Some(PodsTrouble { reason, message }) = trouble {
        for condition in all.iter_mut().filter(|condition| condition.condition_type == "Ready") {
            (condition.reason, condition.message) = (reason.clone(), format!("{}; {message}", condition.message));
        }
    }
    let (reason, message) = match trouble {
        Some(PodsTrouble { reason, message }) => (reason.as_str(), message.as_str()),
        None => ("Healthy", ""),
    };
    all.push(Condition::when(PODS_HEALTHY, trouble.is_none(), reason, message));
    if let Rollout::Failed(failure) = workload.rollout(desired) {
        let message = trouble.map_or(&failure.message, |trouble| &trouble.message);
        all.push(Condition::when("Stalled", true, &failure.reason, message));
    }
    all
}

/// The condition whether any server serves.
pub fn of_availability(workload: &Workload) -> Condition {
    let [.., available] = conditions(workload, workload.status.replicas);
    available
}

/// Why a workload is not there yet.
#[derive(Clone, Debug)]
pub struct Obstacle {
    /// One CamelCase word.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

/// Changes the conditions about a workload to those about one that is not there yet: whatever runs of another one, it is not what was asked
/// for.
pub fn wait_for(all: &mut [Condition], Obstacle { reason, message }: &Obstacle) {
    for (condition_type, holds) in [("Ready", false), ("Progressing", true), ("Degraded", false)] {
        change(all, Condition::when(condition_type, holds, *reason, message.as_str()));
    }
}

/// Changes the conditions about a workload that goes on to those about one that is stuck. `Ready` says already what it waits for.
pub fn be_overdue(all: &mut Vec<Condition>, message: &str) {
    let waits_for = all.iter().find(|condition| condition.condition_type == "Ready");
    let message = match waits_for.map(|ready| ready.message.as_str()) {
        Some(waits) if !waits.is_empty() => format!("{message}; {waits}"),
        _ => message.to_owned(),
    };
    for (condition_type, holds) in [("Progressing", false), ("Degraded", true)] {
        change(all, Condition::when(condition_type, holds, DEADLINE_EXCEEDED, &message));
    }
    all.push(Condition::when("Stalled", true, DEADLINE_EXCEEDED, message));
}

/// Puts a condition in the place of the one of its type.
fn change(all: &mut [Condition], new: Condition) {
    if let Some(old) = all.iter_mut().find(|old| old.condition_type == new.condition_type) {
        *old = new;
    }
}

/// The condition about a budget that lets no Pod be missing; none if it lets some, or if there shall be no Pod.
pub fn of_budget(server: &Server<'_>, desired: i32) -> Option<Condition> {
    if desired == 0 || server.rollout.disruptions_allowed(desired)? > 0 {
        return None;
    }
    let message = format!(
        "spec.disruptionBudget lets none of {desired} Pods be missing, so no node that has one can be drained, and a rollout needs room \
         for one Pod more; let the budget miss one"
    );
    Some(Condition::when("DisruptionAllowed", false, "BudgetAllowsNone", message))
}

/// The condition about a type of GPU that no table knows; none for one that is known.
pub fn of_gpu_type(server: &Server<'_>, config: &GpuConfig) -> Option<Condition> {
    let gpu_type = server.gpus.has_unknown_type(config)?;
    let label = config.product_label();
    let message = format!(
        "spec.gpuType '{gpu_type}' is in no table, so Pods run only on nodes whose label {label} is '{gpu_type}'; add it to \
         gpus.types in the plugin's configuration"
    );
    Some(Condition::when("GpuTypeKnown", false, "UnknownGpuType", message))
}

/// The condition about kinds that an object asks for and the cluster does not have; none if there are none.
pub fn of_missing_kinds(missing: &[MissingKind]) -> Option<Condition> {
    let named: Vec<_> = missing
        .iter()
        .map(|MissingKind { field, api_version, kind }| format!("spec.{field} needs {api_version} {kind}"))
        .collect();
    if named.is_empty() {
        return None;
    }
    let message =
        format!("{}, which is not installed in this cluster; install it, or remove the field", named.join(", "));
    Some(Condition::when("KindsInstalled", false, KIND_NOT_INSTALLED, message))
}
