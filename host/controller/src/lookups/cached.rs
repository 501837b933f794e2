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

/// Answers the lookups of one object from the caches of the kinds that its plugin declares.
#[derive(Clone)]
pub struct CachedLookups {
    /// The namespace of the object being reconciled; empty if it is cluster-scoped.
    pub namespace: Arc<str>,
    /// The informers of the declared kinds.
    pub kinds: BTreeMap<KindRef, Arc<Informer>>,
}

/// The scope of a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LookupScope<'a> {
    /// The kind is cluster-scoped.
    Cluster,
    /// One namespace.
    Namespace(&'a str),
    /// All namespaces: the object being reconciled is cluster-scoped, and the plugin names no namespace.
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
            // A plugin becomes active when none of its informers is `Starting` any more, so that case does not occur.
            WatchState::NotInstalled | WatchState::Starting => {
                Err(LookupError::NotInstalled(format!("{kind} is not installed in this cluster")))
            }
        }
    }

    fn scope<'a>(&'a self, informer: &Informer, requested: Option<&'a str>) -> LookupScope<'a> {
        let is_namespaced = informer.installed().is_none_or(|installed| installed.namespaced);
        match requested {
            _ if !is_namespaced => LookupScope::Cluster,
            Some(namespace) => LookupScope::Namespace(namespace),
            None if self.namespace.is_empty() => LookupScope::AllNamespaces,
            None => LookupScope::Namespace(&self.namespace),
        }
    }
}

impl Lookups for CachedLookups {
    fn get(&self, kind: &KindRef, namespace: Option<&str>, name: &str) -> Result<Option<String>, LookupError> {
        let informer = self.informer(kind)?;
        let namespace = match self.scope(informer, namespace) {
            LookupScope::Cluster => "",
            LookupScope::Namespace(namespace) => namespace,
            LookupScope::AllNamespaces => {
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
        let namespace = match self.scope(informer, namespace) {
            LookupScope::Cluster | LookupScope::AllNamespaces => None,
            LookupScope::Namespace(namespace) => Some(namespace),
        };
        let found = informer.store().select(namespace, |object| selector.matches(&object.labels));
        Ok(found.iter().map(|object| object.text.to_string()).collect())
    }
}
