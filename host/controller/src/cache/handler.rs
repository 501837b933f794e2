//! The interface through which the caches report changes. Keeps the caches independent of whoever listens.

use pilothouse_engine::contract::KindRef;

use super::{Change, WatchScope};
use crate::object::Object;

/// Receives the changes that the watches deliver. Called on the informer's task, so it must not block.
pub trait EventHandler: Send + Sync {
    /// An object was created, changed or deleted.
    fn changed(&self, kind: &KindRef, scope: &WatchScope, change: &Change);

    /// The watch delivered a state that the store had already, from the response to a write of this process. The writer knows
    /// it, but objects that look it up do not.
    fn echoed(&self, kind: &KindRef, scope: &WatchScope, object: &Object);

    /// The store has become synced: whatever depends on the whole kind must be reconciled again.
    fn synced(&self, kind: &KindRef, scope: &WatchScope);
}
