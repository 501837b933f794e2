//! The sources of plugins. A source finds components and what is to be done with them; the [`loader`] loads them and installs them in the
//! host. The host does not know its sources.
//!
//! # Guarantees
//!
//! - One plugin per name and one per kind, over all sources.
//! - A version that fails to load leaves the one at work at work.
//! - What all of them keep in memory has a bound, and one more takes nothing from those that are at work.

pub mod directory;
pub mod files_at_work;
pub mod folder;
pub mod loader;
pub mod plugin_memory;
pub mod plugin_objects;
mod source_id;
mod whole_file;
