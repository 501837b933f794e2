//! What waits in the queue, and what goes first.

use std::{fmt, sync::Arc};

use crate::cache::Name;

/// An object of a plugin.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The plugin's name.
    pub plugin: Arc<str>,
    /// The object's namespace and name.
    pub object: Name,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.plugin, self.object)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// What goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Start-up, swaps, resync: many at once, nobody waits for one of them.
    Bulk,
    /// Somebody changed something.
    Live,
}
