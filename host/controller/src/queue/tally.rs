//! What the queue counts of each plugin's keys: how many came, how long they waited and were worked on. Plain numbers; knows
//! nothing of how they are shown.

use std::time::{Duration, Instant};

/// Upper bounds of the buckets of durations, in seconds, as client-go has them for its queues.
pub const BOUNDS: [f64; 12] = [1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3];

/// What happened to a plugin's keys since the host began.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Keys that began to wait.
    pub adds: u64,
    /// Keys that were given back to be worked on again later.
    pub retries: u64,
    /// How long keys waited.
    pub waited: Durations,
    /// How long keys were worked on.
    pub worked: Durations,
}

/// How it is with a plugin's keys now.
#[derive(Clone, Debug, Default)]
pub struct Load {
    /// Keys that wait because somebody changed something.
    pub live: usize,
    /// Keys that wait as bulk work.
    pub bulk: usize,
    /// How long the keys under way have been worked on, all together.
    pub unfinished: Duration,
    /// How long the key has been worked on that began first.
    pub longest: Duration,
}

/// Durations, counted by how long they are.
#[derive(Clone, Debug, Default)]
pub struct Durations {
    /// How many are in each of [`BOUNDS`], and above all of them.
    pub counts: [u64; BOUNDS.len() + 1],
    /// All of them together, in seconds.
    pub sum: f64,
}

impl Durations {
    /// Counts the time that passed.
    pub fn count(&mut self, since: Option<Instant>, now: Instant) {
        let Some(since) = since else { return };
        let seconds = now.saturating_duration_since(since).as_secs_f64();
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        self.counts[bucket] += 1;
        self.sum += seconds;
    }
}

impl Load {
    /// Counts a key that is worked on.
    pub fn work(&mut self, since: Instant, now: Instant) {
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
            durations.count(Some(now), now + Duration::from_millis(millis));
        }
        durations.count(None, now);
        assert_eq!(durations.counts, [0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 1]);
        assert!((durations.sum - 2000.003).abs() < 1e-6);
    }
}
