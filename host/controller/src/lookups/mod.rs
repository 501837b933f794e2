//! Lookups: what plugins read of objects that they do not own. [`CachedLookups`] answers from the caches, [`LookupIndex`]
//! remembers who asked for what, and [`IndexedLookups`] does both, in the order in which no change can be missed.

mod cached;
mod index;
mod indexed;

pub use self::{cached::CachedLookups, index::LookupIndex, indexed::IndexedLookups};
