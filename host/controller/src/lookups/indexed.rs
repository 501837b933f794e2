//! The lookups of a call in progress. Each is added to the index before it is answered, so that a change between the answer and the
//! end of the call wakes the object. Holds no answers itself.

use std::sync::{Arc, OnceLock};

use pilothouse_engine::{Answer, Lookups, Query, contract::LookupError};

use super::{CachedLookups, LookupIndex, NoRoom};
use crate::queue::Key;

/// Adds each lookup of a call to the index, then answers it.
pub struct IndexedLookups {
    /// Answers the lookups.
    pub answers: CachedLookups,
    /// Records the lookups.
    pub index: Arc<LookupIndex>,
    /// The key that is being reconciled.
    pub key: Key,
    /// Why a lookup could not be remembered; the first one.
    no_room: OnceLock<NoRoom>,
}

impl IndexedLookups {
    /// Lookups of the object with this key.
    pub fn new(answers: CachedLookups, index: Arc<LookupIndex>, key: Key) -> Self {
        Self { answers, index, key, no_room: OnceLock::new() }
    }

    /// Why a lookup could not be remembered. The call does not count then: a change of what it was told would wake nobody.
    pub fn no_room(&self) -> Option<NoRoom> {
        self.no_room.get().copied()
    }
}

impl Lookups for IndexedLookups {
    fn answer(&self, query: &Query, limit: usize) -> Result<Answer, LookupError> {
        if let Err(no_room) = self.index.add(&self.key, query) {
            return Err(LookupError::Denied(self.no_room.get_or_init(|| no_room).to_string()));
        }
        self.answers.answer(query, limit)
    }
}
