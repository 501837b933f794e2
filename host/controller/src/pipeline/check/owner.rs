//! The context of a check: the owner of the children, its plugin's manifest, and the kinds of the cluster. Values only.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use pilothouse_engine::{Manifest, contract::KindRef};

use crate::{kinds::KnownKind, object::Object, schema::Schema};

/// The owner of the children.
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
    /// The child kinds that are installed.
    pub kinds: &'a dyn KnownKinds,
    /// The namespaces in which a cluster-scoped object may have children; none for all.
    pub namespaces: Option<&'a BTreeSet<Arc<str>>>,
}

/// The kinds of a cluster.
pub trait KnownKinds {
    /// Whether a kind is namespaced; none if it is not installed.
    fn is_namespaced(&self, kind: &KindRef) -> Option<bool>;

    /// The schema of a kind, if it is known.
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
