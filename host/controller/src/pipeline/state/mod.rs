//! What is remembered of each object from one reconcile to the next. A reconcile takes it, owns it, and puts it back: a key is
//! never worked on twice at a time, and what a panic leaves half done is forgotten. Forgetting costs a request or a call, never
//! correctness.

pub mod hot_loop;
mod lasting;

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

pub use self::lasting::Lasting;
use super::{
    apply::RefusedWrites,
    call::answer::LastAnswer,
    plan::{Normalised, Recreations},
    report::Reports,
};
use crate::queue::Key;

/// What is worth remembering of one object.
#[derive(Clone, Debug, Default)]
pub struct ObjectState {
    /// The plugin's last answer, and what of it is done.
    pub answer: Option<LastAnswer>,
    /// Differences that are no drift.
    pub normalised: Normalised,
    /// Children that have to be created anew.
    pub recreations: Recreations,
    /// Writes that the API server refused, until they are tried again.
    pub refused_writes: RefusedWrites,
    /// What was reported.
    pub reports: Reports,
    /// The generation of the object that has been reported on, but not carried out yet.
    pub pending_generation: Option<i64>,
    /// The passing fault that goes on.
    pub lasting: Option<Lasting>,
}

/// What is remembered of all objects.
#[derive(Debug, Default)]
pub struct ObjectStates(Mutex<HashMap<Key, ObjectState>>);

impl ObjectStates {
    /// Takes what is remembered of an object; nobody else finds it until it is put back.
    pub fn take(&self, key: &Key) -> ObjectState {
        self.lock().remove(key).unwrap_or_default()
    }

    /// Puts it back.
    pub fn put(&self, key: &Key, state: ObjectState) {
        self.lock().insert(key.clone(), state);
    }

    /// Forgets all objects of a plugin.
    pub fn forget_plugin(&self, plugin: &str) {
        self.lock().retain(|key, _| &*key.plugin != plugin);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, ObjectState>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
