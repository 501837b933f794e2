//! The sources of plugins. A source loads plugins and installs them in the host; the host does not know its sources.

pub mod directory;
