//! The object that an answer's children belong to, and what is known of its plugin and of the cluster. Values only.

use std::collections::BTreeMap;

use pilothouse_engine::{Manifest, contract::KindRef};

use crate::{kinds::KnownKind, object::Object, schema::Schema};

/// The object that the children belong to, and what its plugin declares.
#[derive(Clone, Copy)]
pub struct Owner<'a> {
    /// The plugin's manifest.
    pub manifest: &'a Manifest,
    /// The object's kind.
    pub kind: &'a KindRef,
    /// The object.
    pub object: &'a Object,
    /// The schema of the object's kind.
    pub schema: Option<&'a Schema>,
    /// What is known of the child kinds.
    pub kinds: &'a dyn KnownKinds,
}

/// What the check needs to know of the cluster.
pub trait KnownKinds {
    /// Whether objects of a kind live in namespaces; none if the kind is not installed.
    fn is_namespaced(&self, kind: &KindRef) -> Option<bool>;

    /// A kind's schema, if it is known.
    fn schema(&self, kind: &KindRef) -> Option<&Schema>;
}

impl KnownKinds for BTreeMap<KindRef, KnownKind> {
    fn is_namespaced(&self, kind: &KindRef) -> Option<bool> {
        self.get(kind).map(|known| known.installed.namespaced)
    }

    fn schema(&self, kind: &KindRef) -> Option<&Schema> {
        self.get(kind).and_then(|known| known.schema.as_ref())
    }
}
