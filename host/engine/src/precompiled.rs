//! The only place that loads machine code and handles its pages. [`crate::cache`] makes this safe: the file is in a private directory that
//! only this host writes to, and its name contains the engine's compatibility hash.
#![allow(unsafe_code)]

use std::path::Path;

use rustix::{
    io,
    mm::{Advice, madvise},
};
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

/// Gives the memory of a component's machine code back to the system. Whoever runs it reads what is needed from the file again.
///
/// # Errors
/// If the system refuses. The code stays as it is.
pub(crate) fn give_pages_back(component: &Component) -> io::Result<()> {
    let image = component.image_range();
    let (start, length) = (image.start.cast_mut().cast(), image.end.addr() - image.start.addr());
    // SAFETY: a component that [`load`] has loaded is a private mapping of its whole file from a page boundary on. wasmtime writes nothing into
    // it (it refuses code with relocations) and makes it read-only, so that the file has what the pages had. The file is not changed,
    // because the cache replaces files and never writes into one, and its contents stay while they are mapped, also without a name.
    unsafe { madvise(start, length, Advice::LinuxDontNeed) }
}
