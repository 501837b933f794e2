//! The condition types that the host itself writes, and helpers for conditions. Contains no decisions about an object.

use pilothouse_engine::contract::ConditionStatus;

use crate::lines::shortened;

/// Everything is applied, and the plugin does not report otherwise.
pub const READY: &str = "Ready";

/// In progress, and nobody needs to do anything (kstatus). Absent when false.
pub const RECONCILING: &str = "Reconciling";

/// Stuck until somebody changes something (kstatus). Absent when false.
pub const STALLED: &str = "Stalled";

/// Throttled, because it is reconciled again and again. Absent when false.
pub const THROTTLED: &str = "Throttled";

/// The most bytes of a condition's message (API conventions, `metav1.Condition`).
pub const MAX_MESSAGE_BYTES: usize = 32_768;

/// A reason with its message, for a condition or an Event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StatusReason {
    /// A CamelCase word, for programs.
    pub reason: String,
    /// A sentence, for people.
    pub message: String,
}

impl StatusReason {
    /// A reason with its message.
    pub fn new(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into() }
    }
}

/// Whether the host writes conditions of this type. It may take `Ready` and `Stalled` from the plugin's answer.
pub fn is_written_by_host(condition_type: &str) -> bool {
    matches!(condition_type, READY | RECONCILING | STALLED | THROTTLED)
}

/// A condition's status as Kubernetes writes it.
pub fn status_word(status: ConditionStatus) -> &'static str {
    match status {
        ConditionStatus::IsTrue => "True",
        ConditionStatus::IsFalse => "False",
        ConditionStatus::Unknown => "Unknown",
    }
}

/// A message within [`MAX_MESSAGE_BYTES`]: a longer one is cut and ends in an ellipsis.
pub fn within_limit(message: &str) -> String {
    shortened(message, MAX_MESSAGE_BYTES)
}
