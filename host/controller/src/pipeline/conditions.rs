//! The conditions that the host itself writes, and the words in which a condition is written. Decides nothing.

use pilothouse_engine::contract::ConditionStatus;

/// Everything is applied, and the plugin has nothing against it.
pub const READY: &str = "Ready";

/// On its way; nobody needs to do anything (kstatus).
pub const RECONCILING: &str = "Reconciling";

/// Stuck until somebody changes something (kstatus).
pub const STALLED: &str = "Stalled";

/// Reconciled over and over, and slowed down; there only while it is so.
pub const THROTTLED: &str = "Throttled";

/// Bytes that a condition's message may have (API conventions, `metav1.Condition`).
pub const LONGEST_MESSAGE: usize = 32_768;

/// A reason and a message, as conditions and Events have them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct StatusReason {
    /// One CamelCase word for programs.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

impl StatusReason {
    /// A reason with its message.
    pub fn new(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into() }
    }
}

/// Whether the host writes conditions of a type, be it from the plugin's own words.
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

/// A message within [`LONGEST_MESSAGE`]: a longer one is cut and ends in an ellipsis.
pub fn within_limit(message: &str) -> String {
    const ELLIPSIS: char = '…';
    if message.len() <= LONGEST_MESSAGE {
        return message.to_owned();
    }
    let cut = message.floor_char_boundary(LONGEST_MESSAGE - ELLIPSIS.len_utf8());
    format!("{}{ELLIPSIS}", &message[..cut])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_is_cut_within_the_limit() {
        assert_eq!(within_limit("short"), "short");
        let cut = within_limit(&"ä".repeat(LONGEST_MESSAGE));
        assert!(cut.len() <= LONGEST_MESSAGE && cut.ends_with('…'), "{}", cut.len());
    }
}
