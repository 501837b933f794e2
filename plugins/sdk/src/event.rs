//! Making Events. The host records them, counts repetitions and cuts long messages; nothing here does.

use crate::raw::{Event, EventType};

impl Event {
    /// An Event of type `Normal`. `reason` is one CamelCase word, `message` a sentence.
    pub fn normal(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { event_type: EventType::Normal, reason: reason.into(), message: message.into() }
    }

    /// An Event of type `Warning`: somebody should look at it. `reason` is one CamelCase word, `message` a sentence.
    pub fn warning(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { event_type: EventType::Warning, reason: reason.into(), message: message.into() }
    }
}
