//! The conditions of a job. One that was reached stays in the list, `True` or `False`, so that it can be waited for.

use crate::api::TrainingJobStatus;
use pilothouse_sdk::Condition;

/// The conditions that last from one call to the next. `Ready` is made anew each time, for the host may have overruled it.
const LASTING: [&str; 6] = ["Created", "Running", "Restarting", "Suspended", "Succeeded", "Failed"];

/// Conditions on their way into an answer.
#[derive(Clone, Debug, Default)]
pub struct Conditions(Vec<Condition>);

impl Conditions {
    /// Those that the status has.
    pub fn carried(memory: &TrainingJobStatus) -> Self {
        let lasting = LASTING.iter().filter_map(|name| memory.condition(name));
        let copies = lasting
            .map(|seen| Condition::when(&*seen.condition_type, seen.status == "True", &*seen.reason, &*seen.message));
        Self(copies.collect())
    }

    /// Sets one.
    pub fn set(&mut self, condition_type: &str, holds: bool, reason: &str, message: &str) {
        self.0.retain(|condition| condition.condition_type != condition_type);
        self.0.push(Condition::when(condition_type, holds, reason, message));
    }

    /// Makes one `False` that is `True`; one that is not leaves as it is.
    pub fn end(&mut self, condition_type: &str, reason: &str, message: &str) {
        if self.holds(condition_type) {
            self.set(condition_type, false, reason, message);
        }
    }

    /// Whether one is `True`.
    pub fn holds(&self, condition_type: &str) -> bool {
        self.get(condition_type).is_some_and(|condition| condition.status == pilothouse_sdk::ConditionStatus::IsTrue)
    }

    /// One of them.
    pub fn get(&self, condition_type: &str) -> Option<&Condition> {
        self.0.iter().find(|condition| condition.condition_type == condition_type)
    }
}

impl IntoIterator for Conditions {
    type Item = Condition;
    type IntoIter = std::vec::IntoIter<Condition>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
