//! The conditions of a job. A condition that was once set stays in the list, `True` or `False`, so that `kubectl wait` can wait
//! for either.

use crate::api::TrainingJobStatus;
use pilothouse_sdk::{Condition, ConditionStatus};

/// The conditions that are carried over from one call to the next. `Ready` and `Stalled` are made anew in each call: the host
/// may have overruled `Ready`.
const CARRIED_OVER: [&str; 6] = ["Created", "Running", "Restarting", "Suspended", "Succeeded", "Failed"];

/// The conditions of a response.
#[derive(Clone, Debug, Default)]
pub struct Conditions(Vec<Condition>);

impl Conditions {
    /// The conditions of the last status, without those that are made anew.
    pub fn from_status(old_status: &TrainingJobStatus) -> Self {
        let carried_over = CARRIED_OVER.iter().filter_map(|condition_type| old_status.condition(condition_type));
        let copies = carried_over
            .map(|old| Condition::when(&*old.condition_type, old.status == "True", &*old.reason, &*old.message));
        Self(copies.collect())
    }

    /// Sets a condition, and replaces the one of the same type.
    pub fn set(&mut self, condition: Condition) {
        self.0.retain(|other| other.condition_type != condition.condition_type);
        self.0.push(condition);
    }

    /// Sets a condition to `True`.
    pub fn set_true(&mut self, condition_type: &str, reason: &str, message: &str) {
        self.set(Condition::new(condition_type, ConditionStatus::IsTrue, reason, message));
    }

    /// Sets a condition to `False`.
    pub fn set_false(&mut self, condition_type: &str, reason: &str, message: &str) {
        self.set(Condition::new(condition_type, ConditionStatus::IsFalse, reason, message));
    }

    /// Sets a condition to `False` if it is `True`. Any other one keeps its reason and message.
    pub fn end(&mut self, condition_type: &str, reason: &str, message: &str) {
        if self.is_true(condition_type) {
            self.set_false(condition_type, reason, message);
        }
    }

    /// Whether a condition is `True`.
    pub fn is_true(&self, condition_type: &str) -> bool {
        self.find_true(condition_type).is_some()
    }

    /// A condition, if it is `True`.
    pub fn find_true(&self, condition_type: &str) -> Option<&Condition> {
        let is_true = |condition: &&Condition| condition.status == ConditionStatus::IsTrue;
        self.0.iter().find(|condition| condition.condition_type == condition_type).filter(is_true)
    }
}

impl IntoIterator for Conditions {
    type Item = Condition;
    type IntoIter = std::vec::IntoIter<Condition>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}
