//! What the queue remembers of one key.

use tokio::time::Instant;

use super::Priority;

/// One key's state.
#[derive(Debug, Default)]
pub(super) struct KeyState {
    /// The priority with which it waits; none if it does not wait.
    pub(super) queued: Option<Priority>,
    /// Whether it is being reconciled.
    pub(super) processing: bool,
    /// Whether its plugin went while it was being reconciled.
    pub(super) forgotten: bool,
    /// The priority with which it was added while it was being reconciled. It is queued again afterwards.
    pub(super) requeue: Option<Priority>,
    /// Failures in a row.
    pub(super) failures: u32,
    /// When it is added by itself.
    pub(super) timer: Option<Instant>,
    /// It is not reconciled before this time.
    pub(super) paused_until: Option<Instant>,
    /// When it was added, if it has not been taken since.
    pub(super) waiting_since: Option<Instant>,
    /// When it was taken, if it is being reconciled.
    pub(super) processing_since: Option<Instant>,
}
