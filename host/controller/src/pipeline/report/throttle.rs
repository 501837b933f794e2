//! How often the details of a status are written: once a second at most, for an object whose hundred Pods start would be
//! written a hundred times. What is held is not lost: the plugin is asked again, and says the same or more. News, by which
//! somebody may wait, is never held. Pure.

use std::time::Duration;

use tokio::time::Instant;

use crate::queue::Action;

/// How long details wait after a status was written.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long details have to wait, if they do.
pub fn left(reported: Option<Instant>, now: Instant) -> Option<Duration> {
    let due = reported? + INTERVAL;
    due.checked_duration_since(now).filter(|left| !left.is_zero())
}

/// When an object whose details are held is looked at again. A plugin that wants to be asked again at once waits for what it
/// said to be written, which it is not before.
pub fn action_while_held(action: Action, left: Duration) -> Action {
    match action {
        Action::RequeueAfter(asked) if !asked.is_zero() => Action::RequeueAfter(asked.min(left)),
        Action::Backoff(_) => action,
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
        let after = |milliseconds| left(Some(written), written + Duration::from_millis(milliseconds));
        assert_eq!(left(None, written), None, "the first ones do not wait");
        assert_eq!(after(0), Some(INTERVAL));
        assert_eq!(after(900), Some(Duration::from_millis(100)));
        assert_eq!([after(1_000), after(5_000)], [None, None]);
    }

    #[test]
    fn what_is_held_is_looked_at_again_in_time() {
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
