//! The lifecycle of an object itself: whether this host manages it, its finalizer, and its expiry. Never touches children.

pub mod expiry;
pub mod finalizer;
pub mod managed;
