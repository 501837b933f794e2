//! Checks the words of an answer that programs read: the types and reasons of its conditions, and the reasons of its verdict and its
//! Events. Pure.

use std::collections::BTreeSet;

use pilothouse_engine::contract::{Condition, Event, Verdict};

use super::refusal::Refusal;
use crate::pipeline::conditions::{RECONCILING, THROTTLED};

/// Bytes of a condition's type and of its reason (API conventions, `metav1.Condition`).
const MAX_TYPE_BYTES: usize = 316;
const MAX_REASON_BYTES: usize = 1024;

/// Bytes of the reason of an Event (`events.k8s.io/v1`).
const MAX_EVENT_REASON_BYTES: usize = 128;

/// Refuses conditions that belong to the host, invalid types and reasons, and two conditions of the same type.
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
        return Err(Refusal::Condition(format!(
            "'{condition_type}' belongs to the host; return a verdict instead, or a condition of another type"
        )));
    }
    if !is_word(condition_type, MAX_TYPE_BYTES) || !is_word(reason, MAX_REASON_BYTES) {
        return Err(Refusal::Condition(format!(
            "type '{condition_type}' and reason '{reason}' must be CamelCase words"
        )));
    }
    Ok(())
}

/// Refuses a reason to wait that would be invalid in a condition.
pub(super) fn check_waiting(verdict: &Verdict) -> Result<(), Refusal> {
    match verdict {
        Verdict::Wait(waiting) if !is_word(&waiting.reason, MAX_REASON_BYTES) => {
            let reason = &waiting.reason;
            Err(Refusal::Condition(format!("the reason '{reason}' to wait must be a CamelCase word")))
        }
        _ => Ok(()),
    }
}

/// Refuses the reason of an Event that the API server would refuse, for it would drop the Event without a word.
pub(super) fn check_events(events: &[Event]) -> Result<(), Refusal> {
    match events.iter().find(|event| !is_word(&event.reason, MAX_EVENT_REASON_BYTES)) {
        Some(Event { reason, .. }) => Err(Refusal::Event(format!(
            "the reason '{reason}' must be a CamelCase word of at most {MAX_EVENT_REASON_BYTES} bytes"
        ))),
        None => Ok(()),
    }
}

/// Whether a text matches the pattern for a reason (API conventions, `metav1.Condition`). The same pattern serves for types here; a
/// CRD's schema may be stricter.
fn is_word(text: &str, longest: usize) -> bool {
    text.len() <= longest
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_,:.-/".contains(&b))
}

#[cfg(test)]
mod tests {
    use pilothouse_engine::contract::{ConditionStatus, EventType, Waiting};

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
    fn conditions_of_the_host_and_invalid_ones_are_refused() {
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
    fn two_conditions_of_one_type_are_refused() {
        assert!(check_conditions(&[condition("Ready", "A"), condition("Healthy", "A")]).is_ok());
        assert!(check_conditions(&[condition("Ready", "A"), condition("Ready", "B")]).is_err());
    }

    #[test]
    fn the_reason_of_an_event_must_be_a_camel_case_word() {
        for (reason, allowed) in
            [("Started", true), ("", false), ("two words", false), (&"R".repeat(128), true), (&"R".repeat(129), false)]
        {
            let event = Event {
                event_type: EventType::Normal,
                reason: reason.to_owned(),
                message: "anything at all".to_owned(),
            };
            assert_eq!(check_events(&[event]).is_ok(), allowed, "{reason}");
        }
    }

    #[test]
    fn a_reason_to_wait_must_be_a_camel_case_word() {
        let wait =
            |reason: &str| Verdict::Wait(Waiting { reason: reason.to_owned(), message: String::new(), seconds: 1 });
        assert!(check_waiting(&wait("Missing")).is_ok());
        assert!(check_waiting(&wait("")).is_err() && check_waiting(&wait("two words")).is_err());
        assert!(check_waiting(&Verdict::Done).is_ok());
    }
}
