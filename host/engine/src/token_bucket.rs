//! A bucket of tokens: so many at once, then one each so often. Has no clock of its own and does not know what the tokens are spent on.

use std::time::Duration;

use jiff::Timestamp;

/// How many tokens a bucket holds, and how long it takes until one more is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    burst: u32,
    every: Duration,
}

impl Rate {
    /// So many at once, then one each so often.
    pub const fn new(burst: u32, every: Duration) -> Self {
        Self { burst, every }
    }

    /// The time in which so many tokens come, in nanoseconds.
    fn time_of(self, tokens: u32) -> i128 {
        i128::try_from(self.every.as_nanos()).unwrap_or(i128::MAX).saturating_mul(tokens.into())
    }
}

/// How late somebody may come who looked at the clock before others did, in nanoseconds.
const LATE: i128 = 60_000_000_000;

/// A bucket. A new one is full.
///
/// It is kept as the time at which it is full again (the generic cell rate algorithm, ITU-T I.371), so it is exact and small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenBucket {
    full_at: Option<Timestamp>,
}

impl TokenBucket {
    /// Whether so many tokens are there. Always asked with the same rate.
    pub fn has(&self, rate: Rate, tokens: u32, now: Timestamp) -> bool {
        self.debt(rate, now).saturating_add(rate.time_of(tokens)) <= rate.time_of(rate.burst)
    }

    /// Takes so many tokens; if they are not there, none.
    pub fn take(&mut self, rate: Rate, tokens: u32, now: Timestamp) -> bool {
        let has = self.has(rate, tokens, now);
        let taken = if has { rate.time_of(tokens) } else { 0 };
        // Also where nothing is taken: after a clock was put back, the time until it is full begins anew.
        let full_at = now.as_nanosecond() + self.debt(rate, now) + taken;
        self.full_at = Some(Timestamp::from_nanosecond(full_at).unwrap_or(Timestamp::MAX));
        has
    }

    /// Whether it is full, as if nothing had ever been taken: then it can be forgotten.
    pub fn is_full(&self, now: Timestamp) -> bool {
        self.full_at.is_none_or(|full_at| full_at <= now)
    }

    /// The time until it is full, in nanoseconds. Where the clock was put back, that of an empty one; what is only late is no such case.
    fn debt(&self, rate: Rate, now: Timestamp) -> i128 {
        let left = self.full_at.map_or(0, |full_at| full_at.as_nanosecond() - now.as_nanosecond());
        let most = rate.time_of(rate.burst);
        if left > most.saturating_add(LATE) { most } else { left.max(0) }
    }
}

/// How often somebody is told that something is refused.
const TOLD: Rate = Rate::new(1, Duration::from_secs(3_600));

/// What becomes of something that has a limit over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is within the limit.
    Admitted,
    /// It is above the limit.
    Refused,
    /// It is above the limit, and somebody has to be told of that.
    FirstRefused,
}

/// What is above a limit: of the first of it in an hour somebody has to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals(TokenBucket);

impl Refusals {
    /// One more.
    pub fn refuse(&mut self, now: Timestamp) -> Admission {
        if self.0.take(TOLD, 1, now) { Admission::FirstRefused } else { Admission::Refused }
    }

    /// Whether the next one would be told.
    pub fn is_forgotten(&self, now: Timestamp) -> bool {
        self.0.is_full(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::new(3, Duration::from_secs(10));

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + seconds).unwrap_or_default()
    }

    #[test]
    fn a_bucket_gives_its_burst_and_then_one_token_each_so_often() {
        let mut bucket = TokenBucket::default();
        let mut taken = |seconds| std::iter::from_fn(|| bucket.take(RATE, 1, at(seconds)).then_some(())).count();
        for (seconds, expected) in [(0, 3), (0, 0), (9, 0), (10, 1), (19, 0), (20, 1), (45, 2), (1_000, 3)] {
            assert_eq!(taken(seconds), expected, "after {seconds} s");
        }
    }

    #[test]
    fn what_does_not_fit_takes_nothing() {
        let mut bucket = TokenBucket::default();
        assert!(!bucket.take(RATE, 4, at(0)) && bucket.is_full(at(0)));
        assert!(bucket.take(RATE, 2, at(0)) && !bucket.take(RATE, 2, at(0)));
        assert!(bucket.has(RATE, 1, at(0)) && !bucket.is_full(at(19)) && bucket.is_full(at(20)));
    }

    #[test]
    fn who_comes_late_gets_no_more_than_there_is() {
        let mut bucket = TokenBucket::default();
        assert!(bucket.take(RATE, 3, at(10)) && !bucket.take(RATE, 1, at(5)));
        assert!(!bucket.take(RATE, 1, at(19)) && bucket.take(RATE, 1, at(20)));
    }

    #[test]
    fn a_clock_that_was_put_back_costs_no_more_than_an_empty_bucket() {
        let mut bucket = TokenBucket::default();
        assert!(bucket.take(RATE, 3, at(100_000)) && !bucket.take(RATE, 1, at(0)));
        assert!(!bucket.take(RATE, 1, at(9)) && bucket.take(RATE, 1, at(10)));
        assert!(!bucket.is_full(at(39)) && bucket.is_full(at(40)));
    }
}
