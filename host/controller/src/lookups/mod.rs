//! Lookups: how plugins read objects that they do not own.
//!
//! # Flow
//!
//! During a call, [`IndexedLookups`] adds each lookup to the [`LookupIndex`] and then answers it with [`CachedLookups`]. When the
//! call has ended, [`LookupIndex::record`] replaces the object's lookups with those of this call. When a watched object changes,
//! [`LookupIndex::affected`] tells which keys to reconcile.
//!
//! # Guarantees
//!
//! - A change wakes every object that looks up the changed object, even if it did not exist at the time of the lookup.
//! - No change is missed between the answer and the end of the call, because a lookup is indexed before it is answered.
//! - A lookup makes no request, and a plugin can look up only the kinds that its manifest declares.
//! - What is remembered of lookups has a bound. An object whose lookups have no room fails, and says so.
//! - If the plugin has an account, it is shown only what that account may read ([`Reader`]).
//! - A Secret that no object looks up is not in memory: only the metadata of Secrets is watched, and what is in one is read when it is looked
//!   up ([`Contents`]).
//!
//! # Caveats
//!
//! The index lives in memory. After a restart it is complete once every object has been reconciled, which the start itself causes.
//!
//! # Example
//!
//! ```
//! use pilothouse_controller::{lookups::LookupIndex, object::ObjectRef, queue::Key};
//! use pilothouse_engine::{Query, Scope, contract::KindRef};
//!
//! let (index, settings) = (LookupIndex::default(), KindRef::new("v1", "ConfigMap"));
//! let key = Key { plugin: "web".into(), object: ObjectRef::new("shop", "front") };
//! assert!(index.add(&key, &Query::by_name(settings.clone(), Scope::OwnNamespace, "settings")).is_ok());
//! assert_eq!(index.users_of(&settings), [key.clone()]);
//!
//! index.forget(&key);
//! assert!(index.users_of(&settings).is_empty());
//! ```

mod cached;
mod contents;
mod index;
mod indexed;
mod memory;
mod reader;
mod remembered;

pub use self::{
    cached::{CachedLookups, LookedUpKind, Needed},
    contents::{Contents, Place, ToRead},
    index::LookupIndex,
    indexed::IndexedLookups,
    memory::NoRoom,
    reader::Reader,
    remembered::RememberedAnswers,
};
