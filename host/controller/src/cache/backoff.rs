//! How long a failed watch waits before the next attempt: kube-runtime's default backoff with a lower maximum, so that caches
//! catch up soon after the API server is back. Makes no request.

use std::time::Duration;

use kube::runtime::{utils::Backoff, watcher::DefaultBackoff};

/// The longest delay.
const MAX_DELAY: Duration = Duration::from_secs(8);

/// kube-runtime's default backoff, capped at [`MAX_DELAY`].
#[derive(Default)]
pub(super) struct WatchBackoff(DefaultBackoff);

impl Iterator for WatchBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.0.next().map(|delay| delay.min(MAX_DELAY))
    }
}

impl Backoff for WatchBackoff {
    fn reset(&mut self) {
        self.0.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_the_longest() {
        let pauses: Vec<_> = WatchBackoff::default().take(20).collect();
        assert!(pauses.iter().all(|pause| *pause <= MAX_DELAY) && pauses.last() == Some(&MAX_DELAY), "{pauses:?}");
        assert!(pauses.first().is_some_and(|first| *first < MAX_DELAY / 2));
    }
}
