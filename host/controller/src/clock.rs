//! The sources of time and randomness. Both are passed in from outside, so that a run can be reproduced: waiting and durations use
//! tokio's clock, which tests can pause; the time of day and random numbers come from here. Nothing else in this crate reads the
//! system's clock or random numbers, no order comes from a map that is ordered at random, and each `select!` is `biased`, for its
//! order is random otherwise.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::Timestamp;

/// A time as the API has it: RFC 3339 in UTC with seconds.
pub fn api_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// The time of day. Clones share one clock.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The system's clock.
    pub fn system() -> Self {
        Self::from(Timestamp::now)
    }

    /// A clock that tells the time that `now` returns.
    pub fn from(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The present time.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// Random numbers for jitter and identities. Never for secrets. Clones share one sequence.
#[derive(Clone, Debug)]
pub struct Random(Arc<Mutex<fastrand::Rng>>);

impl Random {
    /// A different sequence in each process.
    pub fn from_system() -> Self {
        Self(Arc::new(Mutex::new(fastrand::Rng::new())))
    }

    /// The same sequence for the same seed.
    pub fn seeded(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))))
    }

    /// The next number, from 0 to below 1.
    pub fn fraction(&self) -> f64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).f64()
    }

    /// The next number of any size.
    pub fn number(&self) -> u64 {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).u64(..)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_decides_every_number() {
        let numbers = |seed| {
            let random = Random::seeded(seed);
            (random.fraction(), random.number())
        };
        assert_eq!(numbers(1), numbers(1));
        assert_ne!(numbers(1), numbers(2));
    }
}
