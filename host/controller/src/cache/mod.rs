//! The shared caches: objects as the API server has them, kept up to date by watches.
//!
//! # Flow
//!
//! [`Caches`] starts one [`Informer`] for each kind and [`WatchScope`], however many plugins use it. An informer waits until its
//! kind is installed, lists it and then watches it. It writes what it receives into its [`Store`] and tells an
//! [`EventHandler`] what changed. The pipeline writes the responses to its own requests into the same store.
//!
//! # Guarantees
//!
//! - A reconcile that follows a write of this process sees that write, even if the watch has not delivered it yet.
//! - An older state never replaces a newer one, and a deleted object does not come back because a response was late.
//! - [`EventHandler::changed`] is called once for each change that the watch delivers, and not for own writes.
//! - An informer that nobody holds any more stops its watch.
//! - A state that several stores of a kind hold is in memory once.
//!
//! # Caveats
//!
//! - A store may lag behind the API server. What must not be done on stale data is guarded by a precondition in the request.
//! - Before [`Store::is_synced`], an object that is missing from the store may still exist.
//! - Objects lack `metadata.managedFields` and kubectl's last-applied annotation.

mod backoff;
mod caches;
mod config;
mod discovery;
mod handler;
mod informer;
mod owned_names;
mod schema_cell;
mod schema_reader;
mod shared_states;
mod store;

pub use self::{
    caches::Caches,
    config::{WatchConfig, WatchScope, is_read_when_looked_up},
    handler::EventHandler,
    informer::{Informer, WatchFailure, WatchState},
    store::{Change, Store},
};
