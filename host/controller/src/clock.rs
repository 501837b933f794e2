//! The sources of time and randomness. Both are passed in from outside, so that a run can be reproduced: waiting and durations use
//! tokio's clock, which tests can pause; the time of day and random numbers come from here. Nothing else in this crate reads the
//! system's clock or random numbers, no order comes from a map that is ordered at random, and each `select!` is `biased`, for its
//! order is random otherwise.

use std::{
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use jiff::{SignedDuration, Timestamp};

use crate::server_time::Difference;

/// A time as the API has it: RFC 3339 in UTC with seconds.
pub fn api_time(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// By how much a clock has to be off for the log to tell.
const TOLD_FROM: SignedDuration = SignedDuration::from_secs(2);

/// The time of day: the API server's, as far as its answers have told, from the clock of this machine. Clones share one clock.
#[derive(Clone)]
pub struct Clock {
    of_this_machine: Arc<dyn Fn() -> Timestamp + Send + Sync>,
    server: Arc<Mutex<ServerClock>>,
}

/// What is known of the API server's clock.
#[derive(Default)]
struct ServerClock {
    difference: Option<Difference>,
    /// The correction that the log has told last.
    told: SignedDuration,
}

impl Clock {
    /// The system's clock as it was at the start, and what has passed since. Whoever sets it meanwhile moves nothing: an object that expires in an
    /// hour would be deleted at once, before the next answer of the API server tells better.
    pub fn system() -> Self {
        let (start, started) = (Timestamp::now(), Instant::now());
        Self::from(move || start.saturating_add(started.elapsed()).unwrap_or(start))
    }

    /// A clock that tells the time that `now` returns.
    pub fn from(now: impl Fn() -> Timestamp + Send + Sync + 'static) -> Self {
        Self { of_this_machine: Arc::new(now), server: Arc::default() }
    }

    /// The present time.
    pub fn now(&self) -> Timestamp {
        let now = self.of_this_machine();
        now.saturating_add(self.server().correction()).unwrap_or(now)
    }

    /// The present time by the clock of this machine alone.
    pub fn of_this_machine(&self) -> Timestamp {
        (self.of_this_machine)()
    }

    /// An answer of the API server has arrived that was made at `date`, to a request that was sent at `sent` by the clock of this machine.
    pub fn compare(&self, sent: Timestamp, date: Timestamp) {
        let newer = Difference::of(sent, self.of_this_machine(), date);
        let mut server = self.server();
        server.difference = Some(server.difference.map_or(newer, |known| known.narrowed(newer)));
        let correction = server.correction();
        if (correction - server.told).abs() >= TOLD_FROM {
            server.told = correction;
            tracing::warn!(
                seconds = correction.as_secs(),
                "the clock of this machine differs from the API server's, whose time counts; set it, for certificates and logs"
            );
        }
    }

    fn server(&self) -> MutexGuard<'_, ServerClock> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ServerClock {
    fn correction(&self) -> SignedDuration {
        self.difference.map_or(SignedDuration::ZERO, Difference::correction)
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
    fn the_time_is_the_api_servers() {
        let now = Timestamp::UNIX_EPOCH;
        let clock = Clock::from(move || now);
        assert_eq!(clock.now(), now);
        let other = clock.clone();
        other.compare(now, now + SignedDuration::from_hours(1));
        assert_eq!(clock.now(), now + SignedDuration::from_hours(1));
        assert_eq!(clock.of_this_machine(), now);
    }

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
