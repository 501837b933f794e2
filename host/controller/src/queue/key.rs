//! The keys in the queue and their priorities. Holds no state.

use std::{fmt, sync::Arc};

use crate::object::ObjectRef;

/// An object together with the plugin that reconciles it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The plugin's name.
    pub plugin: Arc<str>,
    /// The object's namespace and name.
    pub object: ObjectRef,
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

/// How urgent a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Start, plugin swap or resync: many keys at once, and nobody waits for a particular one.
    Bulk,
    /// Something has changed, and somebody may wait for the effect.
    Live,
}
