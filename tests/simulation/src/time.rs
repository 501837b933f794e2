//! The simulated time: tokio's paused clock, seen as the time of day. Never reads the system's clock.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use pilothouse_controller::clock::Clock;
use tokio::time::Instant;

/// The time of day at which every history begins: 2026-01-01T00:00:00Z.
const BEGIN: i64 = 1_767_225_600;

/// The time of one history.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    begin: Instant,
}

impl Time {
    /// A history begins now. Needs a tokio runtime with a paused clock.
    pub fn begin() -> Self {
        Self { begin: Instant::now() }
    }

    /// The time of day at which every history begins.
    pub fn origin() -> Timestamp {
        Timestamp::from_second(BEGIN).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// How long the history has lasted.
    pub fn elapsed(self) -> Duration {
        self.begin.elapsed()
    }

    /// The time of day.
    pub fn now(self) -> Timestamp {
        Self::origin() + SignedDuration::try_from(self.elapsed()).unwrap_or(SignedDuration::MAX)
    }

    /// The clock of a machine, which differs from the time of day.
    pub fn clock(self, ahead: SignedDuration) -> Clock {
        Clock::from(move || self.now() + ahead)
    }
}
