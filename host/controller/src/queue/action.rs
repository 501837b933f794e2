//! The action that follows the reconcile of a key, like controller-runtime's result, and its wording in the log. Pure.

use std::time::Duration;

use super::backoff::delay_after;

/// What happens to a key after its reconcile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing until something changes.
    AwaitChange,
    /// Nothing until something changes, because a retry cannot succeed (controller-runtime's terminal error).
    Terminal,
    /// Reconcile again at once, because the reconcile itself changed something.
    Requeue,
    /// Reconcile again after this time at the latest. Not a failure.
    RequeueAfter(Duration),
    /// Reconcile again after a delay that starts with this time and doubles with every failure in a row.
    Backoff(Duration),
    /// The same, but after `at_most` in any case: the plugin asked to be called by then, whatever fails.
    BackoffUntil {
        /// The first delay.
        first: Duration,
        /// The longest delay.
        at_most: Duration,
    },
}

impl Action {
    /// Whether it is a retry after a failure.
    pub fn is_retry(self) -> bool {
        matches!(self, Self::Backoff(_) | Self::BackoffUntil { .. })
    }

    /// The wording in the log, for a key that had this many failures in a row before.
    pub fn decision(self, failures: u32) -> String {
        match self {
            Self::AwaitChange => "rest until something changes".to_owned(),
            Self::Terminal => "give up until something changes".to_owned(),
            Self::Requeue => "look again at once".to_owned(),
            Self::RequeueAfter(delay) => format!("look again in {delay:?}"),
            Self::Backoff(first) => Self::retry(failures, first, Duration::MAX),
            Self::BackoffUntil { first, at_most } => Self::retry(failures, first, at_most),
        }
    }

    fn retry(failures: u32, first: Duration, at_most: Duration) -> String {
        let retry = failures.saturating_add(1);
        format!("retry {retry} in {:?}", delay_after(first, retry).min(at_most))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_is_told_with_the_delay_that_it_has() {
        let backoff = Action::Backoff(Duration::from_millis(5));
        assert_eq!(backoff.decision(0), "retry 1 in 5ms");
        assert_eq!(backoff.decision(9), "retry 10 in 2.56s");
        let until = Action::BackoffUntil { first: Duration::from_secs(1), at_most: Duration::from_secs(5) };
        assert_eq!([until.decision(0), until.decision(9)], ["retry 1 in 1s", "retry 10 in 5s"]);
        assert_eq!(Action::RequeueAfter(Duration::from_secs(3)).decision(9), "look again in 3s");
    }
}
