//! When a canary is worth a judgement: at the moments at which anything has changed that its judgement depends on (`trial.rs` judges). A
//! glance costs next to nothing while nothing changes, and none is taken while no canary goes on. Decides nothing about a version.

use std::time::Duration;

use tokio::time::{Interval, MissedTickBehavior};

/// How often it is looked whether anything has changed.
const PERIOD: Duration = Duration::from_millis(250);

/// What the judgement of a canary depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Glance {
    /// The version of the cache with its objects.
    pub objects: u64,
    /// Whether the new version has reconciled all of its own; none before the first step.
    pub all_reconciled: Option<bool>,
    /// Whether it is watched with another configuration than it has now.
    pub is_watched_otherwise: bool,
    /// Whether the time of its step is over.
    pub is_over: bool,
}

/// The moments of glances.
pub fn moments() -> Interval {
    let mut moments = tokio::time::interval(PERIOD);
    moments.set_missed_tick_behavior(MissedTickBehavior::Delay);
    moments
}
