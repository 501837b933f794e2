//! The parts of an object that the rules of readiness read. Values only.

use serde_json::Value;

/// The parts of an object that the rules read.
pub(super) struct Parts {
    /// The spec; null for a kind without rules of its own.
    pub(super) spec: Value,
    /// The status; null if there is none.
    pub(super) status: Value,
}
