//! How long a key waits after failures: client-go's default rate limiter, with a little chance.

use std::time::Duration;

/// Delay of the first retry of a passing fault, and the longest delay (client-go's default rate limiter).
pub const BACKOFF_FIRST: Duration = Duration::from_millis(5);
const BACKOFF_LONGEST: Duration = Duration::from_secs(1000);

/// The delay after so many failures in a row: doubling, with up to a tenth more or less so that objects that failed
/// together do not come back together. `chance` is from 0 to 1.
pub(super) fn backoff(first: Duration, failures: u32, chance: f64) -> Duration {
    let doublings = failures.saturating_sub(1).min(31);
    let delay = first.saturating_mul(1 << doublings).min(BACKOFF_LONGEST);
    delay.mul_f64(0.9 + 0.2 * chance)
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
