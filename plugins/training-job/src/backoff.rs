//! How long the restarts of a row wait, and how many there have been. Pure.

use crate::api::TrainingJobStatus;
use pilothouse_pods::time::{Time, after};

/// Seconds before the second of several restarts in a row. Each further restart waits twice as long.
const INITIAL_BACKOFF: u32 = 10;

/// The longest backoff, in seconds.
const MAX_BACKOFF: u32 = 300;

/// A job that has run so many seconds without a restart is well: the next one is not one of a row.
const WELL_AFTER: u32 = 600;

/// How many seconds after the begin of a restart its Pods are created: the first one at once, others of a row later and later.
pub fn restart_delay(old_status: &TrainingJobStatus, now: Time) -> u32 {
    if old_status.last_restart_time.is_none() || has_been_well(old_status, now) {
        return 0;
    }
    old_status.restart_delay_seconds.saturating_mul(2).clamp(INITIAL_BACKOFF, MAX_BACKOFF)
}

/// By how many seconds the clocks of a cluster may differ.
const TOLERATED_SKEW: u32 = 60;

/// When the Pods of the last restart are created; none where that restart is yet to come, for then the clock has been set back since.
pub fn end_of_pause(status: &TrainingJobStatus, now: Time) -> Option<Time> {
    let end = after(status.last_restart_time.as_ref(), Some(status.restart_delay_seconds))?;
    (end.since(now) <= status.restart_delay_seconds.saturating_add(TOLERATED_SKEW)).then_some(end)
}

/// How many times in a row the job has been disrupted, with a disruption that happens now.
pub fn disruptions(old_status: &TrainingJobStatus, now: Time) -> u32 {
    if has_been_well(old_status, now) { 1 } else { old_status.disruption_count.saturating_add(1) }
}

fn has_been_well(old_status: &TrainingJobStatus, now: Time) -> bool {
    // A worker that is replaced alone does not keep the others from running.
    let restart = after(old_status.last_restart_time.as_ref(), Some(WELL_AFTER));
    let is_well = |well: Time| now >= well && restart.is_none_or(|restart| now >= restart);
    after(old_status.running_since.as_ref(), Some(WELL_AFTER)).is_some_and(is_well)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_restart_is_at_once_and_later_ones_wait_longer() {
        let now = Time::parse("2026-01-01T00:20:00Z");
        let text = |time: &str| Some(time.to_owned());
        let mut status = TrainingJobStatus::default();
        let mut delays = Vec::new();
        for _ in 0..8 {
            status.restart_delay_seconds = now.map(|now| restart_delay(&status, now)).unwrap_or_default();
            status.last_restart_time = text("2026-01-01T00:05:00Z");
            delays.push(status.restart_delay_seconds);
        }
        assert_eq!(delays, [0, 10, 20, 40, 80, 160, 300, 300]);
        for (running_since, expected) in [("2026-01-01T00:10:01Z", 300), ("2026-01-01T00:10:00Z", 0)] {
            status.running_since = text(running_since);
            assert_eq!(now.map(|now| restart_delay(&status, now)), Some(expected), "{running_since}");
        }
        // One worker was replaced while enough others ran.
        for (last_restart, expected) in [("2026-01-01T00:10:01Z", 300), ("2026-01-01T00:10:00Z", 0)] {
            status.last_restart_time = text(last_restart);
            assert_eq!(now.map(|now| restart_delay(&status, now)), Some(expected), "{last_restart}");
        }
    }
}
