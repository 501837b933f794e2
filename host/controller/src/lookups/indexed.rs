//! The lookups of a call in progress. Each is added to the index before it is answered, so that a change between the answer and the
//! end of the call wakes the object. Holds no answers itself.

use std::sync::Arc;

use pilothouse_engine::{
    Lookups, Query,
    contract::{KindRef, LookupError},
};

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
    fn get(&self, kind: &KindRef, namespace: Option<&str>, name: &str) -> Result<Option<String>, LookupError> {
        let (requested_namespace, requested_name) = (namespace.map(str::to_owned), name.to_owned());
        self.index
            .add(&self.key, Query::Get { kind: kind.clone(), namespace: requested_namespace, name: requested_name });
        self.answers.get(kind, namespace, name)
    }

    fn select(&self, kind: &KindRef, namespace: Option<&str>, selector: &str) -> Result<Vec<String>, LookupError> {
        let (requested_namespace, requested_selector) = (namespace.map(str::to_owned), selector.to_owned());
        let query = Query::Select { kind: kind.clone(), namespace: requested_namespace, selector: requested_selector };
        self.index.add(&self.key, query);
        self.answers.select(kind, namespace, selector)
    }
}
