//! Making conditions. The host sets their transition times and `observedGeneration`; nothing here does.

use crate::raw::{Condition, ConditionStatus};

impl Condition {
    /// A condition of any status. `reason` is one CamelCase word, `message` a sentence or empty.
    pub fn new(
        condition_type: impl Into<String>,
        status: ConditionStatus,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        Self { condition_type: condition_type.into(), status, reason: reason.into(), message: message.into() }
    }

    /// A condition that is `True` if `holds`, and `False` otherwise.
    pub fn when(
        condition_type: impl Into<String>,
        holds: bool,
        reason: impl Into<String>,
        message: impl Into<String>,
    ) -> Self {
        let status = if holds { ConditionStatus::IsTrue } else { ConditionStatus::IsFalse };
        Self::new(condition_type, status, reason, message)
    }
}
