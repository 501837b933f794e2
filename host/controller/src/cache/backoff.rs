//! How long a watch that failed waits before it is tried again: as kube-runtime does, but never so long that an API server
//! which is back is left waiting for half a minute.

use std::time::Duration;

use kube::runtime::{utils::Backoff, watcher::DefaultBackoff};

/// The longest pause.
const LONGEST: Duration = Duration::from_secs(8);

/// The default pauses, up to the longest.
#[derive(Default)]
pub(super) struct WatchBackoff(DefaultBackoff);

impl Iterator for WatchBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.0.next().map(|pause| pause.min(LONGEST))
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
        assert!(pauses.iter().all(|pause| *pause <= LONGEST) && pauses.last() == Some(&LONGEST), "{pauses:?}");
        assert!(pauses.first().is_some_and(|first| *first < LONGEST / 2));
    }
}
