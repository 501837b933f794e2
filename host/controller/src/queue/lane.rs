//! One plugin's place in the queue: its live changes before its bulk work, which gets a turn now and then all the same.

use std::collections::{HashMap, VecDeque};

use super::{Key, Priority, Tally, entry::Entry};

/// Live changes that go before bulk work in a row. Where changes come as fast as they are worked on, what waits since a start
/// would wait for ever otherwise.
const IN_A_ROW: usize = 3;

/// One plugin's waiting keys.
#[derive(Debug, Default)]
pub(super) struct Lane {
    pub(super) live: VecDeque<Key>,
    pub(super) bulk: VecDeque<Key>,
    /// Live changes that went before bulk work since that had a turn.
    in_a_row: usize,
    pub(super) working: usize,
    pub(super) tally: Tally,
}

impl Lane {
    /// The next key that still waits at its place.
    pub(super) fn pop(&mut self, entries: &HashMap<Key, Entry>) -> Option<Key> {
        let order = match self.in_a_row < IN_A_ROW {
            true => [Priority::Live, Priority::Bulk],
            false => [Priority::Bulk, Priority::Live],
        };
        order.into_iter().find_map(|place| self.pop_from(place, entries))
    }

    fn pop_from(&mut self, place: Priority, entries: &HashMap<Key, Entry>) -> Option<Key> {
        let waits = |key: &Key| entries.get(key).is_some_and(|entry| entry.queued == Some(place));
        let keys = match place {
            Priority::Live => &mut self.live,
            Priority::Bulk => &mut self.bulk,
        };
        let key = std::iter::from_fn(|| keys.pop_front()).find(waits)?;
        let goes_before = place == Priority::Live && !self.bulk.is_empty();
        self.in_a_row = if goes_before { self.in_a_row + 1 } else { 0 };
        Some(key)
    }

    /// Forgets all keys.
    pub(super) fn clear(&mut self) {
        self.live.clear();
        self.bulk.clear();
    }

    /// Whether no key has a place.
    pub(super) fn is_empty(&self) -> bool {
        self.live.is_empty() && self.bulk.is_empty()
    }
}
