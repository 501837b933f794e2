//! All informers of the process. Starts one when somebody first asks for its kind; never looks at the objects inside.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
};

use kube::Client;
use pilothouse_engine::contract::KindRef;

use super::{
    EventHandler, Informer, Store, WatchConfig, WatchScope, discovery::Discovery, informer::InformerParts,
    schema_reader::SchemaReader,
};

/// All informers of the process, each shared by everybody who asks for the same kind and scope.
pub struct Caches {
    parts: InformerParts,
    /// Weak, so that an informer ends with its last user.
    informers: Mutex<HashMap<(KindRef, WatchScope), Weak<Informer>>>,
}

impl Caches {
    /// Creates an empty set of informers, all of which will report to `handler`.
    pub fn new(client: Client, config: WatchConfig, handler: Arc<dyn EventHandler>) -> Self {
        let schemas = Arc::new(SchemaReader::new(client.clone(), config.schemas.clone()));
        let discovery = Arc::new(Discovery::new(client.clone()));
        Self { parts: InformerParts { client, schemas, discovery, config, handler }, informers: Mutex::default() }
    }

    /// The informer of a kind, started if nobody uses it yet. Needs a tokio runtime.
    pub fn informer(&self, kind: &KindRef, scope: WatchScope) -> Arc<Informer> {
        let mut informers = self.informers.lock().unwrap_or_else(PoisonError::into_inner);
        informers.retain(|_, informer| informer.strong_count() > 0);
        let key = (kind.clone(), scope.clone());
        if let Some(known) = informers.get(&key).and_then(Weak::upgrade) {
            return known;
        }
        let mut same_kind = informers.iter().filter(|((known, _), _)| known == kind);
        let shared = same_kind.find_map(|(_, known)| known.upgrade()).map(|known| known.store().shared().clone());
        let store = Store::sharing(shared.unwrap_or_default(), &scope);
        let informer = Informer::start(kind.clone(), scope, store, self.parts.clone());
        // The lock is held until here. Otherwise two callers could start two watches of one kind.
        informers.insert(key, Arc::downgrade(&informer));
        informer
    }

    /// All informers that somebody holds.
    pub fn informers(&self) -> Vec<Arc<Informer>> {
        let informers = self.informers.lock().unwrap_or_else(PoisonError::into_inner);
        informers.values().filter_map(Weak::upgrade).collect()
    }
}
