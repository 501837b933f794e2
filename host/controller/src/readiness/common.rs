//! The rules of readiness that all kinds have in common. Reads a status, and nothing else.

use pilothouse_engine::contract::Readiness;
use serde_json::Value;

use super::{
    fields::{condition, integer},
    not_current::{failed, in_progress},
};

/// What all kinds have in common; none if it says nothing.
pub(super) fn readiness(status: &Value, generation: i64) -> Option<Readiness> {
    let is_true = |name: &str| condition(status, name).filter(|condition| condition.status == "True");
    unobserved(status, generation)
        .or_else(|| is_true("Stalled").map(|stalled| failed(stalled.reason_or("Stalled"), stalled.message)))
        .or_else(|| {
            let reconciling = is_true("Reconciling")?;
            Some(in_progress(reconciling.reason_or("Reconciling"), reconciling.message))
        })
}

/// A status about an older spec says nothing of this one.
pub(super) fn unobserved(status: &Value, generation: i64) -> Option<Readiness> {
    let observed = integer(status, "observedGeneration").filter(|observed| *observed != generation)?;
    let message = format!("generation {generation} is not observed yet, but generation {observed}");
    Some(in_progress("LatestGenerationNotObserved", &message))
}
