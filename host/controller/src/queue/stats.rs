//! What the queue counts for each plugin: how many keys were added, how long they waited and were reconciled. Plain numbers;
//! the metrics decide how to expose them.

use std::time::Duration;

use tokio::time::Instant;

/// The upper bounds of the buckets of [`Durations`], in seconds: those of client-go's queue metrics.
pub const BUCKET_BOUNDS: [f64; 12] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3];

/// What happened to a plugin's keys since the host started.
#[derive(Clone, Debug, Default)]
pub struct QueueStats {
    /// Keys that were queued.
    pub adds: u64,
    /// Keys that were given back with a delay.
    pub retries: u64,
    /// How long keys waited.
    pub waited: Durations,
    /// How long keys were reconciled.
    pub worked: Durations,
}

/// What a plugin's keys do at present.
#[derive(Clone, Debug, Default)]
pub struct QueueLoad {
    /// Keys that wait with [`Priority::Live`](super::Priority::Live).
    pub live: usize,
    /// Keys that wait with [`Priority::Bulk`](super::Priority::Bulk).
    pub bulk: usize,
    /// The sum of the times for which the keys in progress have been reconciled.
    pub unfinished: Duration,
    /// The longest of these times.
    pub longest: Duration,
}

/// One plugin's numbers.
#[derive(Clone, Debug, Default)]
pub struct QueueSnapshot {
    /// What happened so far.
    pub stats: QueueStats,
    /// What the keys do at present.
    pub load: QueueLoad,
}

/// A histogram of durations.
#[derive(Clone, Debug, Default)]
pub struct Durations {
    /// How many durations fall into each bucket of [`BUCKET_BOUNDS`]; the last one counts those above all bounds.
    pub counts: [u64; BUCKET_BOUNDS.len() + 1],
    /// The sum of all durations, in seconds.
    pub sum: f64,
}

impl Durations {
    /// Counts the time since `since`; nothing if that is unknown.
    pub fn observe(&mut self, since: Option<Instant>, now: Instant) {
        let Some(since) = since else { return };
        let seconds = now.saturating_duration_since(since).as_secs_f64();
        let bucket = BUCKET_BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BUCKET_BOUNDS.len());
        self.counts[bucket] += 1;
        self.sum += seconds;
    }
}

impl QueueLoad {
    /// Counts a key in progress.
    pub fn count_processing(&mut self, since: Instant, now: Instant) {
        let duration = now.saturating_duration_since(since);
        self.unfinished += duration;
        self.longest = self.longest.max(duration);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_is_in_the_first_bucket_that_holds_it() {
        let (mut durations, now) = (Durations::default(), Instant::now());
        for millis in [1, 2, 2_000_000] {
            durations.observe(Some(now), now + Duration::from_millis(millis));
        }
        durations.observe(None, now);
        assert_eq!(durations.counts, [0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1]);
        assert!((durations.sum - 2000.003).abs() < 1e-6);
    }
}
