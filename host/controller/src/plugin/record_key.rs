//! What the record of child kinds keeps apart: the owners of a kind, and each of its decorators. Decides nothing.

use pilothouse_engine::{Manifest, contract::KindRef};

use crate::leader::Post;

/// Whose child kinds are recorded together: those of all plugins that own a custom resource, and those of each decorator.
#[derive(Clone, Copy, Debug)]
pub struct RecordKey<'a> {
    pub(super) reconciles: &'a KindRef,
    pub(super) decorator: Option<&'a str>,
}

impl<'a> RecordKey<'a> {
    /// Where the child kinds are recorded of plugins that own a kind, or of a decorator of it.
    pub(super) fn new(reconciles: &'a KindRef, decorator: Option<&'a str>) -> Self {
        Self { reconciles, decorator }
    }

    /// Where the child kinds of a plugin with this manifest are recorded.
    pub fn of(manifest: &'a Manifest) -> Self {
        let decorator = manifest.decorates.as_ref().map(|_| manifest.name.as_str());
        Self { reconciles: &manifest.reconciles, decorator }
    }

    /// What one host at a time does: whatever may touch the same children.
    pub fn post(&self) -> Post {
        match self.decorator {
            Some(plugin) => Post::of_decorator(plugin),
            None => Post::of_kind(&self.reconciles.kind, self.reconciles.group()),
        }
    }
}
