//! The waiting keys of one plugin: live keys first, with a bulk key in between now and then. Knows no other plugin.

use std::collections::{HashMap, VecDeque};

use super::{Key, Priority, QueueStats, key_state::KeyState};

/// How many live keys may overtake a waiting bulk key in a row. Without a limit, bulk keys would starve while changes arrive as
/// fast as they are reconciled.
const MAX_LIVE_IN_A_ROW: usize = 3;

/// The room for keys from which on it is given back once it is hardly used.
pub(super) const MUCH_ROOM: usize = 1024;

/// One plugin's waiting keys.
#[derive(Debug, Default)]
pub(super) struct PluginQueue {
    pub(super) live: VecDeque<Key>,
    pub(super) bulk: VecDeque<Key>,
    /// Live keys that have overtaken bulk keys since the last bulk key.
    live_in_a_row: usize,
    pub(super) processing: usize,
    /// Whether its plugin is at work, so that its statistics are somebody's.
    pub(super) is_open: bool,
    /// How many keys it reconciles at once; none for what the queue says.
    pub(super) concurrency: Option<usize>,
    pub(super) stats: QueueStats,
}

impl PluginQueue {
    /// The next key. Skips stale entries: keys that have moved to the other priority or were forgotten.
    pub(super) fn pop(&mut self, key_states: &HashMap<Key, KeyState>) -> Option<Key> {
        let order = match self.live_in_a_row < MAX_LIVE_IN_A_ROW {
            true => [Priority::Live, Priority::Bulk],
            false => [Priority::Bulk, Priority::Live],
        };
        order.into_iter().find_map(|priority| self.pop_with(priority, key_states))
    }

    fn pop_with(&mut self, priority: Priority, key_states: &HashMap<Key, KeyState>) -> Option<Key> {
        let waits = |key: &Key| key_states.get(key).is_some_and(|key_state| key_state.queued == Some(priority));
        let keys = match priority {
            Priority::Live => &mut self.live,
            Priority::Bulk => &mut self.bulk,
        };
        let key = std::iter::from_fn(|| keys.pop_front()).find(waits)?;
        if keys.is_empty() && keys.capacity() > MUCH_ROOM {
            // All objects may have waited here at once. At rest hardly any does.
            keys.shrink_to(MUCH_ROOM / 8);
        }
        let goes_before = priority == Priority::Live && !self.bulk.is_empty();
        self.live_in_a_row = if goes_before { self.live_in_a_row + 1 } else { 0 };
        Some(key)
    }

    /// Forgets all but how many keys are in progress: they come back.
    pub(super) fn close(&mut self) {
        *self = Self { processing: self.processing, ..Self::default() };
    }

    /// Whether no key waits.
    pub(super) fn is_empty(&self) -> bool {
        self.live.is_empty() && self.bulk.is_empty()
    }
}
