//! One plugin's place in the queue: its live changes before its bulk work.

use std::collections::{HashMap, VecDeque};

use super::{Key, Priority, Tally, entry::Entry};

/// One plugin's waiting keys.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) live: VecDeque<Key>,
    pub(super) bulk: VecDeque<Key>,
    pub(super) working: usize,
    pub(super) tally: Tally,
}

impl Lane {
    /// The first key that still waits at this place.
    pub(super) fn pop(&mut self, entries: &HashMap<Key, Entry>) -> Option<Key> {
        let waits = |key: &Key, place: Priority| entries.get(key).is_some_and(|entry| entry.queued == Some(place));
        while let Some(key) = self.live.pop_front() {
            if waits(&key, Priority::Live) {
                return Some(key);
            }
        }
        while let Some(key) = self.bulk.pop_front() {
            if waits(&key, Priority::Bulk) {
                return Some(key);
            }
        }
        None
    }
}
