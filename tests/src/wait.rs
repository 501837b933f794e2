//! Waits for conditions by polling, with a time limit and an error message. There is no plain sleep.

use std::time::{Duration, Instant};

use anyhow::{Result, bail};

/// The polling interval.
const LOOK: Duration = Duration::from_millis(10);

/// Waits until `look` finds something. `what` completes the sentence "waited 10 s for …".
///
/// # Errors
/// If the condition does not hold in time. Quotes what `look` found last.
pub async fn eventually<T>(within: Duration, what: &str, mut look: impl AsyncFnMut() -> Result<Look<T>>) -> Result<T> {
    let started = Instant::now();
    let mut pause = LOOK;
    loop {
        let seen = match look().await {
            Ok(Look::Found(found)) => return Ok(found),
            Ok(Look::NotYet(seen)) => seen,
            Err(error) => format!("{error:#}"),
        };
        if started.elapsed() >= within {
            bail!("waited {within:?} for {what}; in the end: {seen}");
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_millis(100));
    }
}

/// The result of one poll.
pub enum Look<T> {
    /// The condition holds.
    Found(T),
    /// It does not hold yet. Carries the current state, for the error message.
    NotYet(String),
}

impl Look<()> {
    /// A condition that holds or not.
    pub fn of(holds: bool, seen: impl std::fmt::Debug) -> Self {
        if holds { Self::Found(()) } else { Self::NotYet(format!("{seen:?}")) }
    }
}
