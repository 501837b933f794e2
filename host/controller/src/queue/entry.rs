//! What the queue remembers of one key.

use std::time::Instant;

use super::Priority;

/// One key's state.
#[derive(Debug, Default)]
pub(super) struct Entry {
    pub(super) queued: Option<Priority>,
    pub(super) working: bool,
    /// Asked for again while it was worked on.
    pub(super) again: Option<Priority>,
    pub(super) failures: u32,
    pub(super) timer: Option<Instant>,
    /// Not worked on before this.
    pub(super) pause: Option<Instant>,
    /// Since when it waits, or somebody asks for it.
    pub(super) asked: Option<Instant>,
    /// Since when it is worked on.
    pub(super) began: Option<Instant>,
}
