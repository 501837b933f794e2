//! Which conditions and reasons a plugin may set.

use std::collections::BTreeSet;

use pilothouse_engine::contract::{Condition, Verdict};

use super::refusal::Refusal;
use crate::pipeline::conditions::{RECONCILING, THROTTLED};

/// Bytes of a condition's type and of its reason (API conventions, `metav1.Condition`).
const LONGEST_TYPE: usize = 316;
const LONGEST_REASON: usize = 1024;

/// Refuses what belongs to the host, what no API server would take, and one type twice.
pub(super) fn check_conditions(conditions: &[Condition]) -> Result<(), Refusal> {
    let mut seen = BTreeSet::new();
    for condition in conditions {
        check_condition(condition)?;
        if !seen.insert(&condition.condition_type) {
            return Err(Refusal::Condition(format!("'{}' twice", condition.condition_type)));
        }
    }
    Ok(())
}

fn check_condition(condition: &Condition) -> Result<(), Refusal> {
    let Condition { condition_type, reason, .. } = condition;
    if matches!(condition_type.as_str(), RECONCILING | THROTTLED) {
        return Err(Refusal::Condition(format!("'{condition_type}' belongs to the host")));
    }
    if !is_word(condition_type, LONGEST_TYPE) || !is_word(reason, LONGEST_REASON) {
        return Err(Refusal::Condition(format!(
            "type '{condition_type}' and reason '{reason}' must be CamelCase words"
        )));
    }
    Ok(())
}

/// Refuses a reason to wait that cannot be a condition's.
pub(super) fn check_waiting(verdict: &Verdict) -> Result<(), Refusal> {
    match verdict {
        Verdict::Wait(waiting) if !is_word(&waiting.reason, LONGEST_REASON) => {
            let reason = &waiting.reason;
            Err(Refusal::Condition(format!("the reason '{reason}' to wait must be a CamelCase word")))
        }
        _ => Ok(()),
    }
}

/// The API conventions' pattern for a reason; types are checked by the API server where the schema says so.
fn is_word(text: &str, longest: usize) -> bool {
    text.len() <= longest
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_,:.-/".contains(&b))
}

#[cfg(test)]
mod tests {
    use pilothouse_engine::contract::{ConditionStatus, Waiting};

    use super::*;

    fn condition(condition_type: &str, reason: &str) -> Condition {
        Condition {
            condition_type: condition_type.to_owned(),
            status: ConditionStatus::IsTrue,
            reason: reason.to_owned(),
            message: String::new(),
        }
    }

    #[test]
    fn conditions_of_the_host_are_not_for_plugins() {
        for (condition_type, reason, allowed) in [
            ("Ready", "Available", true),
            ("Stalled", "X", true),
            ("Reconciling", "X", false),
            ("Ready", "", false),
            ("Ready", "two words", false),
            ("Ready", &"R".repeat(1025), false),
            ("", "X", false),
        ] {
            let condition = condition(condition_type, reason);
            assert_eq!(check_conditions(&[condition]).is_ok(), allowed, "{condition_type} {reason}");
        }
    }

    #[test]
    fn a_type_comes_once() {
        assert!(check_conditions(&[condition("Ready", "A"), condition("Healthy", "A")]).is_ok());
        assert!(check_conditions(&[condition("Ready", "A"), condition("Ready", "B")]).is_err());
    }

    #[test]
    fn a_reason_to_wait_is_a_word() {
        let wait =
            |reason: &str| Verdict::Wait(Waiting { reason: reason.to_owned(), message: String::new(), seconds: 1 });
        assert!(check_waiting(&wait("Missing")).is_ok());
        assert!(check_waiting(&wait("")).is_err() && check_waiting(&wait("two words")).is_err());
        assert!(check_waiting(&Verdict::Done).is_ok());
    }
}
