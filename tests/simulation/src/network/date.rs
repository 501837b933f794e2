//! The dates of answers: what time it is for the API server that a host talks to. The API servers of a cluster differ by a few seconds.

use fastrand::Rng;
use http::{HeaderValue, Response, header::DATE};
use jiff::{SignedDuration, Timestamp, fmt::rfc2822::DateTimePrinter};

/// By how many seconds the clock of an API server may be off.
pub const MOST: i64 = 2;

/// Distinguishes the random numbers of the clocks from all others of a seed.
const CLOCKS: u64 = 0x6461_7465_7300_0001;

/// The clocks of the API servers.
pub(super) struct Dates {
    random: Rng,
    /// By how many seconds the one that each host talks to is ahead.
    ahead: Vec<i64>,
}

impl Dates {
    /// Clocks that follow from a seed.
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Rng::with_seed(seed ^ CLOCKS);
        let ahead = [drawn(&mut random), drawn(&mut random)].into();
        Self { random, ahead }
    }

    /// A host talks to another API server.
    pub(super) fn move_host(&mut self, host: usize) {
        let drawn = drawn(&mut self.random);
        if let Some(ahead) = self.ahead.get_mut(host) {
            *ahead = drawn;
        }
    }

    /// From now on all clocks are right.
    pub(super) fn calm(&mut self) {
        self.ahead.fill(0);
    }

    /// An answer to a host, with the date of this moment.
    pub(super) fn dated<B>(&self, host: usize, now: Timestamp, mut answer: Response<B>) -> Response<B> {
        let ahead = SignedDuration::from_secs(self.ahead.get(host).copied().unwrap_or_default());
        let date = now.saturating_add(ahead).ok();
        let date = date.and_then(|date| DateTimePrinter::new().timestamp_to_rfc9110_string(&date).ok());
        if let Some(date) = date.and_then(|date| HeaderValue::try_from(date).ok()) {
            answer.headers_mut().insert(DATE, date);
        }
        answer
    }
}

fn drawn(random: &mut Rng) -> i64 {
    random.i64(-MOST..=MOST)
}
