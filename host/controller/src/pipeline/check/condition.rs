//! Which conditions a plugin may set.

use pilothouse_engine::contract::Condition;

use super::Refusal;
use crate::pipeline::status::THROTTLED;

/// Refuses what belongs to the host, and what no API server would take.
pub(super) fn check_condition(condition: &Condition) -> Result<(), Refusal> {
    let Condition { condition_type, reason, .. } = condition;
    if matches!(condition_type.as_str(), "Reconciling" | THROTTLED) {
        return Err(Refusal::Condition(format!("'{condition_type}' belongs to the host")));
    }
    // The API conventions' pattern for a reason; types are checked by the API server where the schema says so.
    let word = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_,:.-/".contains(&b))
    };
    if !word(condition_type) || !word(reason) {
        return Err(Refusal::Condition(format!(
            "type '{condition_type}' and reason '{reason}' must be CamelCase words"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use pilothouse_engine::contract::ConditionStatus;

    use super::*;

    #[test]
    fn conditions_of_the_host_are_not_for_plugins() {
        for (condition_type, reason, allowed) in [
            ("Ready", "Available", true),
            ("Stalled", "X", true),
            ("Reconciling", "X", false),
            ("Ready", "", false),
            ("Ready", "two words", false),
            ("", "X", false),
        ] {
            let condition = Condition {
                condition_type: condition_type.to_owned(),
                status: ConditionStatus::IsTrue,
                reason: reason.to_owned(),
                message: String::new(),
            };
            assert_eq!(check_condition(&condition).is_ok(), allowed, "{condition_type} {reason}");
        }
    }
}
