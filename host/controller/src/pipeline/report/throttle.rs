//! Limits writes of status details to one per second. Without it, an object with a hundred starting Pods would be written a hundred
//! times. A held detail is not lost: the plugin is called again after the delay and reports the latest values. News, such as a new
//! status of a condition, is never held, because somebody may wait for it (`kubectl wait`). Pure.

use std::time::Duration;

use tokio::time::Instant;

use crate::queue::Action;

/// The minimum time between two writes of details.
const INTERVAL: Duration = Duration::from_secs(1);

/// The remaining time until details may be written; none if they may be written now.
pub fn remaining(reported: Option<Instant>, now: Instant) -> Option<Duration> {
    let due = reported? + INTERVAL;
    due.checked_duration_since(now).filter(|left| !left.is_zero())
}

/// The action for an object whose details are held: reconcile when they may be written, at the latest. An immediate requeue waits
/// as well, because the plugin relies on its status being written before the next call.
pub fn action_while_held(action: Action, left: Duration) -> Action {
    match action {
        Action::RequeueAfter(asked) if !asked.is_zero() => Action::RequeueAfter(asked.min(left)),
        Action::Backoff(_) | Action::BackoffUntil { .. } => action,
        Action::AwaitChange | Action::Terminal | Action::Requeue | Action::RequeueAfter(_) => {
            Action::RequeueAfter(left)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn details_wait_for_a_second_after_the_last_write() {
        let written = Instant::now();
        let after = |milliseconds| remaining(Some(written), written + Duration::from_millis(milliseconds));
        assert_eq!(remaining(None, written), None, "the first ones do not wait");
        assert_eq!(after(0), Some(INTERVAL));
        assert_eq!(after(900), Some(Duration::from_millis(100)));
        assert_eq!([after(1_000), after(5_000)], [None, None]);
    }

    #[test]
    fn held_details_are_written_at_the_next_allowed_time() {
        let (left, second) = (Duration::from_millis(300), Duration::from_secs(1));
        for (asked, expected) in [
            (Action::AwaitChange, Action::RequeueAfter(left)),
            (Action::Terminal, Action::RequeueAfter(left)),
            (Action::Requeue, Action::RequeueAfter(left)),
            (Action::RequeueAfter(Duration::ZERO), Action::RequeueAfter(left)),
            (Action::RequeueAfter(second), Action::RequeueAfter(left)),
            (Action::RequeueAfter(left / 3), Action::RequeueAfter(left / 3)),
            (Action::Backoff(second), Action::Backoff(second)),
        ] {
            assert_eq!(action_while_held(asked, left), expected, "{asked:?}");
        }
    }
}
