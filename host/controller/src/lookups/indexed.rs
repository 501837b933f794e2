//! Lookups of a call that is under way. Each is put into the index before it is answered: a change that comes between the
//! answer and the end of the call wakes the object up, also if it is about an object that nobody asked for before.

use std::sync::Arc;

use pilothouse_engine::{
    Lookups, Query,
    contract::{KindRef, LookupError},
};

use super::{CachedLookups, LookupIndex};
use crate::queue::Key;

/// Answers a call's lookups and notes them down.
pub struct IndexedLookups {
    /// The answers.
    pub answers: CachedLookups,
    /// Where they are noted.
    pub index: Arc<LookupIndex>,
    /// Whose call it is.
    pub key: Key,
}

impl Lookups for IndexedLookups {
    fn get(&self, kind: &KindRef, namespace: Option<&str>, name: &str) -> Result<Option<String>, LookupError> {
        let (namespace_asked, name_asked) = (namespace.map(str::to_owned), name.to_owned());
        self.index.add(&self.key, Query::Get { kind: kind.clone(), namespace: namespace_asked, name: name_asked });
        self.answers.get(kind, namespace, name)
    }

    fn select(&self, kind: &KindRef, namespace: Option<&str>, selector: &str) -> Result<Vec<String>, LookupError> {
        let (namespace_asked, selector_asked) = (namespace.map(str::to_owned), selector.to_owned());
        let query = Query::Select { kind: kind.clone(), namespace: namespace_asked, selector: selector_asked };
        self.index.add(&self.key, query);
        self.answers.select(kind, namespace, selector)
    }
}
