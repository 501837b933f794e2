//! Lookups: answers them from the caches and remembers who asked for what, so that a change wakes the right objects,
//! also when what was asked for did not exist.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pilothouse_engine::{
    Lookups, Query,
    contract::{KindRef, LookupError},
};

use crate::{
    cache::{Name, Object, State, Watched},
    queue::Key,
    selector::Selector,
};

/// Answers one object's lookups from the watches of the kinds its plugin declares.
pub struct FromCaches {
    /// Namespace of the object being reconciled.
    pub namespace: Arc<str>,
    /// The declared kinds.
    pub kinds: BTreeMap<KindRef, Arc<Watched>>,
}

impl FromCaches {
    fn watched(&self, kind: &KindRef) -> Result<&Watched, LookupError> {
        let watched = self
            .kinds
            .get(kind)
            .ok_or_else(|| LookupError::Denied(format!("the plugin's manifest declares no lookup of {kind}")))?;
        match watched.state() {
            State::Synced => Ok(watched),
            State::Failing(why) => Err(LookupError::Denied(why)),
            State::NotInstalled | State::Starting => {
                Err(LookupError::NotInstalled(format!("{kind} is not installed in this cluster")))
            }
        }
    }

    /// The namespace that a lookup means; none for a cluster-scoped kind.
    fn namespace<'a>(&'a self, watched: &Watched, asked: Option<&'a str>) -> Option<&'a str> {
        let namespaced = watched.installed().is_none_or(|installed| installed.namespaced);
        namespaced.then(|| asked.unwrap_or(&self.namespace))
    }
}

impl Lookups for FromCaches {
    fn get(&self, kind: &KindRef, namespace: Option<&str>, name: &str) -> Result<Option<String>, LookupError> {
        let watched = self.watched(kind)?;
        let name = Name::new(self.namespace(watched, namespace).unwrap_or_default(), name);
        Ok(watched.store().get(&name).map(|object| object.text.to_string()))
    }

    fn select(&self, kind: &KindRef, namespace: Option<&str>, selector: &str) -> Result<Vec<String>, LookupError> {
        let watched = self.watched(kind)?;
        let selector = Selector::parse(selector).map_err(LookupError::Denied)?;
        let namespace = self.namespace(watched, namespace);
        let found = watched.store().select(namespace, |object| selector.matches(&object.labels));
        Ok(found.iter().map(|object| object.text.to_string()).collect())
    }
}

/// Who looked up what, the other way round.
#[derive(Debug, Default)]
pub struct LookupIndex {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    by_key: HashMap<Key, Vec<Query>>,
    by_name: HashMap<(KindRef, Name), HashSet<Key>>,
    by_selector: HashMap<KindRef, HashMap<(Option<String>, String), HashSet<Key>>>,
}

impl LookupIndex {
    /// Replaces what a key's last reconcile looked up.
    pub fn record(&self, key: &Key, queries: Vec<Query>) {
        let mut inner = self.lock();
        if inner.by_key.get(key).map_or(queries.is_empty(), |known| *known == queries) {
            return;
        }
        inner.forget(key);
        for query in &queries {
            inner.index(key, query);
        }
        if !queries.is_empty() {
            inner.by_key.insert(key.clone(), queries);
        }
    }

    /// Forgets a key whose object is gone.
    pub fn forget(&self, key: &Key) {
        self.lock().forget(key);
    }

    /// The keys that a state of a looked-up object wakes.
    pub fn affected(&self, kind: &KindRef, object: &Object) -> Vec<Key> {
        let inner = self.lock();
        let cluster_wide = Name::new("", &object.name.name);
        let mut keys = Vec::new();
        for name in [&object.name, &cluster_wide] {
            keys.extend(inner.by_name.get(&(kind.clone(), name.clone())).into_iter().flatten().cloned());
        }
        for ((namespace, selector), waiting) in inner.by_selector.get(kind).into_iter().flatten() {
            let in_scope = namespace.as_deref().is_none_or(|namespace| *object.name.namespace == *namespace);
            if in_scope && Selector::parse(selector).is_ok_and(|selector| selector.matches(&object.labels)) {
                keys.extend(waiting.iter().cloned());
            }
        }
        keys
    }

    /// All keys that look up objects of a kind.
    pub fn users_of(&self, kind: &KindRef) -> Vec<Key> {
        let inner = self.lock();
        let uses = |queries: &Vec<Query>| {
            queries.iter().any(|query| match query {
                Query::Get { kind: asked, .. } | Query::Select { kind: asked, .. } => asked == kind,
            })
        };
        inner.by_key.iter().filter(|(_, queries)| uses(queries)).map(|(key, _)| key.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn index(&mut self, key: &Key, query: &Query) {
        let waiting = match query {
            Query::Get { kind, namespace, name } => {
                let namespace = namespace.as_deref().unwrap_or(&key.object.namespace);
                self.by_name.entry((kind.clone(), Name::new(namespace, name))).or_default()
            }
            Query::Select { kind, namespace, selector } => {
                let namespace = namespace.clone().unwrap_or_else(|| key.object.namespace.to_string());
                let selectors = self.by_selector.entry(kind.clone()).or_default();
                selectors.entry((Some(namespace), selector.clone())).or_default()
            }
        };
        waiting.insert(key.clone());
    }

    fn forget(&mut self, key: &Key) {
        if self.by_key.remove(key).is_none() {
            return;
        }
        self.by_name.retain(|_, waiting| {
            waiting.remove(key);
            !waiting.is_empty()
        });
        for selectors in self.by_selector.values_mut() {
            selectors.retain(|_, waiting| {
                waiting.remove(key);
                !waiting.is_empty()
            });
        }
    }
}
