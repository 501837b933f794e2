//! What the pipeline remembers of objects between reconciles. Forgetting it costs a request or a call, never
//! correctness.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Instant,
};

use super::{inputs::Converged, plan::Normalised, report::KnownStatus, settled::Settled};
use crate::queue::Key;

/// What is worth remembering of one object.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    /// Differences that are no drift.
    pub normalised: Normalised,
    /// What is known of the status.
    pub status: KnownStatus,
    /// When a status was written last.
    pub reported: Option<Instant>,
    /// The last answer whose children were all as it wants them.
    pub settled: Option<Settled>,
    /// The generation of the object that has been reported on, but not carried out yet.
    pub unsettled: Option<i64>,
    /// The last reconcile, if it left nothing to do.
    pub converged: Option<Converged>,
}

/// The memory of all objects.
#[derive(Debug, Default)]
pub struct Memories(Mutex<HashMap<Key, Memory>>);

impl Memories {
    /// Reads a part of what is remembered of an object; of one that is not remembered, the default.
    pub fn read<T: Default>(&self, key: &Key, read: impl FnOnce(&Memory) -> T) -> T {
        self.lock().get(key).map(read).unwrap_or_default()
    }

    /// Changes what is remembered of an object.
    pub fn update(&self, key: &Key, change: impl FnOnce(&mut Memory)) {
        change(self.lock().entry(key.clone()).or_default());
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    /// Forgets all objects of a plugin.
    pub fn forget_plugin(&self, plugin: &str) {
        self.lock().retain(|key, _| &*key.plugin != plugin);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Memory>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
