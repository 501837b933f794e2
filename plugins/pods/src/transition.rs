//! Events about conditions: one when a condition changes, and none while it stays. It compares with the conditions that the object
//! had, and keeps nothing itself.

use pilothouse_sdk::{Condition, ConditionStatus, Event};
use serde::Deserialize;

/// A condition in the status of an object, as the host wrote it last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct StatusCondition {
    /// Its type, such as `Ready`.
    #[serde(rename = "type")]
    pub condition_type: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// One CamelCase word.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

/// What an Event says about a condition that changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announced<'a> {
    /// The type of the condition.
    pub condition_type: &'a str,
    /// The reason of the Event when it becomes `True`; none for no Event.
    pub on_true: Option<&'a str>,
    /// The reason of the Event when it becomes `False`; none for that of the condition.
    pub on_false: Option<&'a str>,
}

/// The Events about conditions that differ from what the object said before. Where it said nothing before, only what is good is
/// told: a new object is not ready yet, and that is no news.
pub fn events(old: &[StatusCondition], new: &[Condition], announced: &[Announced<'_>]) -> Vec<Event> {
    announced.iter().filter_map(|announced| event(old, new, *announced)).collect()
}

fn event(old: &[StatusCondition], new: &[Condition], announced: Announced<'_>) -> Option<Event> {
    let now = new.iter().find(|condition| condition.condition_type == announced.condition_type)?;
    let before = old.iter().find(|condition| condition.condition_type == announced.condition_type);
    let was = before.map(|condition| condition.status.as_str());
    match now.status {
        ConditionStatus::IsTrue if was != Some("True") => {
            announced.on_true.map(|reason| Event::normal(reason, &now.message))
        }
        ConditionStatus::IsFalse => {
            let changed = match announced.on_false {
                Some(_) => was == Some("True"),
                None => was != Some("False") || before.is_some_and(|before| before.reason != now.reason),
            };
            changed.then(|| Event::warning(announced.on_false.unwrap_or(&now.reason), &now.message))
        }
        ConditionStatus::IsTrue | ConditionStatus::Unknown => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pilothouse_sdk::EventType;

    const READY: Announced<'_> =
        Announced { condition_type: "Ready", on_true: Some("ModelReady"), on_false: Some("ModelNotReady") };
    const HEALTHY: Announced<'_> = Announced { condition_type: "PodsHealthy", on_true: None, on_false: None };

    /// The status and reason before, those now, and the Event.
    type Case = (Announced<'static>, Option<(&'static str, &'static str)>, (bool, &'static str), Option<&'static str>);

    const CASES: &[Case] = &[
        (READY, None, (false, "Progressing"), None),
        (READY, None, (true, "Available"), Some("Normal ModelReady")),
        (READY, Some(("False", "Progressing")), (true, "Available"), Some("Normal ModelReady")),
        (READY, Some(("True", "Available")), (true, "Available"), None),
        (READY, Some(("True", "Available")), (false, "Progressing"), Some("Warning ModelNotReady")),
        (READY, Some(("False", "Progressing")), (false, "Other"), None),
        (HEALTHY, None, (false, "OOMKilled"), Some("Warning OOMKilled")),
        (HEALTHY, Some(("True", "Healthy")), (false, "OOMKilled"), Some("Warning OOMKilled")),
        (HEALTHY, Some(("False", "OOMKilled")), (false, "OOMKilled"), None),
        (HEALTHY, Some(("False", "OOMKilled")), (false, "Evicted"), Some("Warning Evicted")),
        (HEALTHY, Some(("False", "OOMKilled")), (true, "Healthy"), None),
    ];

    #[test]
    fn a_change_is_told_once() {
        for (announced, before, (status, reason), expected) in CASES {
            let old: Vec<_> = before
                .iter()
                .map(|(status, reason)| StatusCondition {
                    condition_type: announced.condition_type.to_owned(),
                    status: (*status).to_owned(),
                    reason: (*reason).to_owned(),
                    message: String::new(),
                })
                .collect();
            let new = [Condition::when(announced.condition_type, *status, *reason, "m")];
            let told: Vec<_> = events(&old, &new, &[*announced])
                .iter()
                .map(|event| {
                    let kind = if event.event_type == EventType::Normal { "Normal" } else { "Warning" };
                    format!("{kind} {}", event.reason)
                })
                .collect();
            assert_eq!(told.first().map(String::as_str), *expected, "{announced:?} {before:?} {status} {reason}");
        }
    }
}
