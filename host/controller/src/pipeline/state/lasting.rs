//! How long a passing fault goes on. One conflict is no news to anybody; one that lasts is. Counts only.

use std::time::Duration;

use tokio::time::Instant;

/// How long a fault that is probably over with the next try goes on before the status tells it.
const BEFORE_STATUS: Duration = Duration::from_secs(2);

/// How long any passing fault goes on before an Event tells it.
const BEFORE_EVENT: Duration = Duration::from_secs(10);

/// A passing fault that has not ended yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lasting {
    since: Instant,
}

impl Lasting {
    /// A fault that goes on, or begins now.
    pub fn goes_on(before: Option<Self>, now: Instant) -> Self {
        before.unwrap_or(Self { since: now })
    }

    /// Whether the status tells it.
    pub fn is_for_status(self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= BEFORE_STATUS
    }

    /// Whether an Event tells it.
    pub fn is_for_event(self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= BEFORE_EVENT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_fault_is_told_once_it_lasts() {
        let began = Instant::now();
        let fault = Lasting::goes_on(None, began);
        let later = |seconds| began + Duration::from_secs(seconds);
        assert!(!fault.is_for_status(later(1)) && fault.is_for_status(later(2)));
        assert!(!fault.is_for_event(later(9)) && fault.is_for_event(later(10)));
        assert_eq!(Lasting::goes_on(Some(fault), later(5)), fault, "it is the same fault");
    }
}
