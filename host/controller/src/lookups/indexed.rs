//! The lookups of a call in progress. Each is added to the index before it is answered, so that a change between the answer and the
//! end of the call wakes the object. Holds no answers itself.

use std::sync::Arc;

use pilothouse_engine::{Answer, Lookups, Query, contract::LookupError};

use super::{CachedLookups, LookupIndex};
use crate::queue::Key;

/// Adds each lookup of a call to the index, then answers it.
pub struct IndexedLookups {
    /// Answers the lookups.
    pub answers: CachedLookups,
    /// Records the lookups.
    pub index: Arc<LookupIndex>,
    /// The key that is being reconciled.
    pub key: Key,
}

impl Lookups for IndexedLookups {
    fn answer(&self, query: &Query, limit: usize) -> Result<Answer, LookupError> {
        self.index.add(&self.key, query.clone());
        self.answers.answer(query, limit)
    }
}
