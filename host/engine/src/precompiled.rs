//! The only place that loads machine code. [`crate::cache`] makes this safe: the file is in a private directory that only this host
//! writes to, and its name contains the engine's compatibility hash.
#![allow(unsafe_code)]

use std::path::Path;

use wasmtime::{Engine, component::Component};

/// Loads precompiled code from the host's own cache.
///
/// # Errors
/// If the file is missing, has a damaged header or comes from another engine. The caller compiles again.
pub(crate) fn load(engine: &Engine, path: &Path) -> wasmtime::Result<Component> {
    // SAFETY: running machine code that somebody else made could do anything. `path` is always a file in the cache's
    // private directory, written by this host's own compiler and renamed when it was complete; plugins and users
    // cannot name it.
    unsafe { Component::deserialize_file(engine, path) }
}
