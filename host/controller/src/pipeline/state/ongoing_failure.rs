//! How long a failure that may pass by itself has lasted. A single conflict is not worth a report; one that lasts is.

use std::time::Duration;

use tokio::time::Instant;

/// How long a transient failure lasts before the status reports it.
const STATUS_AFTER: Duration = Duration::from_secs(2);

/// How long any failure that may pass by itself lasts before a Warning Event reports it.
const EVENT_AFTER: Duration = Duration::from_secs(10);

/// A failure that may pass by itself and has not ended yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OngoingFailure {
    since: Instant,
}

impl OngoingFailure {
    /// The failure from before, or a new one that starts now.
    pub fn continued_or_new(before: Option<Self>, now: Instant) -> Self {
        before.unwrap_or(Self { since: now })
    }

    /// Whether it has lasted long enough for the status.
    pub fn is_due_for_status(self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= STATUS_AFTER
    }

    /// Whether it has lasted long enough for an Event.
    pub fn is_due_for_event(self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) >= EVENT_AFTER
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_failure_is_due_for_the_status_after_2_s_and_for_an_event_after_10_s() {
        let began = Instant::now();
        let failure = OngoingFailure::continued_or_new(None, began);
        let later = |seconds| began + Duration::from_secs(seconds);
        assert!(!failure.is_due_for_status(later(1)) && failure.is_due_for_status(later(2)));
        assert!(!failure.is_due_for_event(later(9)) && failure.is_due_for_event(later(10)));
        assert_eq!(OngoingFailure::continued_or_new(Some(failure), later(5)), failure, "it is the same failure");
    }
}
