//! The namespaces that a plugin works in, after the labels of the namespaces. Decides nothing about rights.

use std::{collections::BTreeSet, sync::Arc};

use pilothouse_engine::{Selector, contract::KindRef};

use crate::{
    cache::{Caches, Informer, WatchScope},
    object::ObjectRef,
};

/// The namespaces that a plugin works in.
pub struct ServedNamespaces {
    selector: Selector,
    informer: Arc<Informer>,
}

impl ServedNamespaces {
    /// Follows the namespaces of the cluster.
    pub fn follow(selector: Selector, caches: &Caches) -> Self {
        Self { selector, informer: caches.informer(&KindRef::new("v1", "Namespace"), WatchScope::All) }
    }

    /// Whether a namespace is one of them. One that is not known is not.
    pub fn contains(&self, namespace: &str) -> bool {
        let found = self.informer.store().get(&ObjectRef::new("", namespace));
        found.is_some_and(|found| self.selector.matches(|key| found.labels.get(key)))
    }

    /// All of them.
    pub fn all(&self) -> BTreeSet<Arc<str>> {
        let matching =
            self.informer.store().select(None, |namespace| self.selector.matches(|key| namespace.labels.get(key)));
        matching.iter().map(|namespace| namespace.name.name.clone()).collect()
    }

    /// The informer of namespaces.
    pub fn informer(&self) -> &Arc<Informer> {
        &self.informer
    }
}
