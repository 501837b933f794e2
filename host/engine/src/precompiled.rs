//! The one place that loads machine code. Everything that makes this safe is in [`crate::cache`]: the file lies in a
//! private directory that only this host writes, under a name that holds the engine's compatibility.
#![allow(unsafe_code)]

use std::path::Path;

use wasmtime::{Engine, component::Component};

/// Loads precompiled code from the host's own cache.
///
/// # Errors
/// Where the file is missing, damaged in its header, or of another engine; the caller compiles anew.
pub(crate) fn load(engine: &Engine, path: &Path) -> wasmtime::Result<Component> {
    // SAFETY: running machine code that somebody else made could do anything. `path` is always a file in the cache's
    // private directory, written by this host's own compiler and renamed when it was complete; plugins and users
    // cannot name it.
    unsafe { Component::deserialize_file(engine, path) }
}
