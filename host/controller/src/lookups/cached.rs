//! Answers one object's lookups from the caches. Makes no request and remembers nothing.

use std::{collections::BTreeMap, sync::Arc};

use pilothouse_engine::{
    Lookups,
    contract::{KindRef, LookupError},
};

use crate::{
    cache::{Informer, WatchState},
    object::ObjectRef,
    selector::Selector,
};

/// Answers one object's lookups from the watches of the kinds that its plugin declares.
#[derive(Clone)]
pub struct CachedLookups {
    /// Namespace of the object being reconciled; empty for a cluster-scoped one.
    pub namespace: Arc<str>,
    /// The declared kinds.
    pub kinds: BTreeMap<KindRef, Arc<Informer>>,
}

/// Where a lookup looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place<'a> {
    /// The kind has no namespaces.
    Cluster,
    /// In one namespace.
    Namespace(&'a str),
    /// In all: a cluster-scoped object has no namespace of its own, and the plugin names none.
    AllNamespaces,
}

impl CachedLookups {
    fn informer(&self, kind: &KindRef) -> Result<&Informer, LookupError> {
        let informer = self
            .kinds
            .get(kind)
            .ok_or_else(|| LookupError::Denied(format!("the plugin's manifest declares no lookup of {kind}")))?;
        match informer.state() {
            WatchState::Synced => Ok(informer),
            WatchState::Failing(why) => Err(LookupError::Denied(why)),
            WatchState::NotInstalled | WatchState::Starting => {
                Err(LookupError::NotInstalled(format!("{kind} is not installed in this cluster")))
            }
        }
    }

    fn place<'a>(&'a self, informer: &Informer, asked: Option<&'a str>) -> Place<'a> {
        let is_namespaced = informer.installed().is_none_or(|installed| installed.namespaced);
        match asked {
            _ if !is_namespaced => Place::Cluster,
            Some(namespace) => Place::Namespace(namespace),
            None if self.namespace.is_empty() => Place::AllNamespaces,
            None => Place::Namespace(&self.namespace),
        }
    }
}

impl Lookups for CachedLookups {
    fn get(&self, kind: &KindRef, namespace: Option<&str>, name: &str) -> Result<Option<String>, LookupError> {
        let informer = self.informer(kind)?;
        let namespace = match self.place(informer, namespace) {
            Place::Cluster => "",
            Place::Namespace(namespace) => namespace,
            Place::AllNamespaces => {
                let why = format!(
                    "a lookup of {kind} '{name}' names no namespace, and the object being reconciled is cluster-scoped; \
                     name the namespace"
                );
                return Err(LookupError::Denied(why));
            }
        };
        Ok(informer.store().get(&ObjectRef::new(namespace, name)).map(|object| object.text.to_string()))
    }

    fn select(&self, kind: &KindRef, namespace: Option<&str>, selector: &str) -> Result<Vec<String>, LookupError> {
        let informer = self.informer(kind)?;
        let selector = Selector::parse(selector).map_err(|error| LookupError::Denied(error.to_string()))?;
        let namespace = match self.place(informer, namespace) {
            Place::Cluster | Place::AllNamespaces => None,
            Place::Namespace(namespace) => Some(namespace),
        };
        let found = informer.store().select(namespace, |object| selector.matches(&object.labels));
        Ok(found.iter().map(|object| object.text.to_string()).collect())
    }
}
