//! How long a key waits after failures: client-go's default rate limiter with jitter. Pure.

use std::time::Duration;

/// The delay before the first retry of a transient error, and the longest delay, as in client-go's default rate limiter.
pub const BACKOFF_FIRST: Duration = Duration::from_millis(5);
const BACKOFF_MAX: Duration = Duration::from_secs(1000);

/// The delay after this many failures in a row: it doubles with each.
pub fn delay_after(first: Duration, failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(31);
    first.saturating_mul(1 << doublings).min(BACKOFF_MAX)
}

/// The same with up to 10 % more or less, so that keys that failed together are not retried together. `jitter` is a random
/// number from 0 to 1.
pub(super) fn backoff(first: Duration, failures: u32, jitter: f64) -> Duration {
    delay_after(first, failures).mul_f64(0.9 + 0.2 * jitter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backoff_doubles_from_5_ms_to_1000_s() {
        for (failures, expected) in
            [(1, 5), (2, 10), (3, 20), (11, 5_120), (18, 655_360), (19, 1_000_000), (99, 1_000_000)]
        {
            assert_eq!(backoff(BACKOFF_FIRST, failures, 0.5), Duration::from_millis(expected), "{failures}");
        }
        assert!(
            backoff(BACKOFF_FIRST, 3, 0.0) >= Duration::from_millis(18)
                && backoff(BACKOFF_FIRST, 3, 1.0) <= Duration::from_millis(22)
        );
    }
}
