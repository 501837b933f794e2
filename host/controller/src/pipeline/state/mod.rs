//! The state that is kept for each object between two reconciles.
//!
//! # Flow
//!
//! A reconcile takes the state of its object, owns it, and puts it back at the end.
//!
//! # Guarantees
//!
//! - One reconcile at a time has an object's state, because the queue never hands out a key twice at the same time.
//! - A panic leaves no half-updated state behind: a state that is not put back is lost as a whole.
//!
//! # Caveats
//!
//! All of it is a cache and may be lost at any time, as after a restart. That costs a request or a call, never correctness.

pub mod hot_loop;
mod ongoing_failure;

use std::{
    collections::{BTreeSet, HashMap},
    sync::{Mutex, MutexGuard, PoisonError},
};

use pilothouse_engine::Fingerprint;

pub use self::ongoing_failure::OngoingFailure;
use super::{
    apply::{RefusedChildren, RefusedWrites},
    call::answer::LastAnswer,
    plan::{Normalised, Recreations},
    report::Reports,
};
use crate::queue::Key;

/// The state of one object.
#[derive(Clone, Debug, Default)]
pub struct ObjectState {
    /// The plugin's last answer, and which parts of it are done.
    pub answer: Option<LastAnswer>,
    /// Differences that come from the API server's normalisation and are no drift.
    pub normalised: Normalised,
    /// Children that must be deleted and created again.
    pub recreations: Recreations,
    /// The UIDs of children that stay although the plugin no longer wants them.
    pub left: BTreeSet<Box<str>>,
    /// Writes that the API server refused, until their next try.
    pub refused_writes: RefusedWrites,
    /// Children that could not be written, to tell the plugin.
    pub refused_children: RefusedChildren,
    /// The previous reports.
    pub reports: Reports,
    /// The object's generation, if it was reported but its answer is not carried out yet.
    pub pending_generation: Option<i64>,
    /// The labels and annotations of the object with which its decorator was done.
    pub decorated: Option<Fingerprint>,
    /// The failure that the last reconciles ended with, if it may pass by itself.
    pub ongoing_failure: Option<OngoingFailure>,
}

/// The states of all objects. Boxed: up to half of the places of a hash table are free, and a state is large.
#[derive(Debug, Default)]
pub struct ObjectStates(Mutex<HashMap<Key, Box<ObjectState>>>);

impl ObjectStates {
    /// Takes the state of an object out; an empty one if there is none.
    pub fn take(&self, key: &Key) -> Box<ObjectState> {
        self.lock().remove(key).unwrap_or_default()
    }

    /// Puts the state of an object back.
    pub fn put(&self, key: &Key, state: Box<ObjectState>) {
        self.lock().insert(key.clone(), state);
    }

    /// The number of objects with a state.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// Whether no object has a state.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Drops the states of all objects of a plugin.
    pub fn forget_plugin(&self, plugin: &str) {
        self.lock().retain(|key, _| &*key.plugin != plugin);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Box<ObjectState>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
