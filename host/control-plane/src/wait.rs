//! Waiting for a condition, with a deadline. The only place that sleeps, and only between two looks.

use anyhow::Result;
use std::time::{Duration, Instant};

/// How long to wait between two looks.
const PAUSE: Duration = Duration::from_millis(50);

/// How the waiting ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Waited {
    Held,
    TimedOut,
}

impl Waited {
    pub(crate) fn timed_out(self) -> bool {
        self == Waited::TimedOut
    }
}

/// Looks until `condition` holds, fails, or `limit` has passed.
pub(crate) async fn until(limit: Duration, mut condition: impl AsyncFnMut() -> Result<bool>) -> Result<Waited> {
    let deadline = Instant::now() + limit;
    loop {
        if condition().await? {
            return Ok(Waited::Held);
        }
        if Instant::now() >= deadline {
            return Ok(Waited::TimedOut);
        }
        tokio::time::sleep(PAUSE).await;
    }
}
