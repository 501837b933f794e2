//! The beginning and the end of an object: whether it is ours at all, its finalizer, its expiry. Children are no affair of these.

pub mod expiry;
pub mod finalizer;
pub mod managed;
