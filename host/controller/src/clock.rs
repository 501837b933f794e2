//! Time and chance, as the controller gets them. Both come from outside, so that a run can be repeated: waiting and durations
//! follow tokio's clock, which tests pause; the time of day and random numbers come from here.

use std::{
    fmt,
    sync::{Arc, Mutex, PoisonError},
};

use jiff::Timestamp;

/// The time of day. Clones are one clock.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Timestamp + Send + Sync>);

impl Clock {
    /// The machine's clock.
    pub fn system() -> Self {
        Self::from(Timestamp::now)
    }

    /// Another clock.
    pub fn from(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// The time now.
    pub fn now(&self) -> Timestamp {
        (self.0)()
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

/// Random numbers, for delays that shall not all be the same. Never for secrets. Clones are one sequence.
#[derive(Clone, Debug)]
pub struct Random(Arc<Mutex<fastrand::Rng>>);

impl Random {
    /// Another sequence in each process.
    pub fn from_system() -> Self {
        Self(Arc::new(Mutex::new(fastrand::Rng::new())))
    }

    /// Always the same sequence.
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
