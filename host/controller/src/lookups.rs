//! Lookups: answers them from the caches and remembers who asked for what, so that a change wakes the right objects,
//! also when what was asked for did not exist.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pilothouse_engine::{
    Lookups, Query,
    contract::{KindRef, LookupError},
};

use crate::{
    cache::{Name, Object, State, Watched},
    events::Note,
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

    /// What is told of lookups that were denied, once for each kind.
    pub fn denials(&self, denied: &[KindRef]) -> Vec<Note> {
        let kinds: BTreeSet<_> = denied.iter().collect();
        kinds.into_iter().map(|kind| Note::warning("LookupDenied", &self.why_denied(kind))).collect()
    }

    fn why_denied(&self, kind: &KindRef) -> String {
        match self.watched(kind) {
            Err(LookupError::Denied(why)) => why,
            _ => format!("a lookup of {kind} has a selector that is none, or is one too many for a call"),
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
    by_kind: HashMap<KindRef, Waiting>,
}

/// Who waits for objects of one kind.
#[derive(Debug, Default)]
struct Waiting {
    names: HashMap<String, HashSet<InNamespace>>,
    selectors: HashMap<String, HashSet<InNamespace>>,
}

/// A key, and the namespace that it looked into. A cluster-scoped object is in all of them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct InNamespace {
    namespace: String,
    key: Key,
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
        let Some(waiting) = inner.by_kind.get(kind) else { return Vec::new() };
        let selects = |selector: &str| Selector::parse(selector).is_ok_and(|selector| selector.matches(&object.labels));
        let by_name = waiting.names.get(&*object.name.name).into_iter().flatten();
        let by_selector = waiting.selectors.iter().filter(|(selector, _)| selects(selector)).flat_map(|(_, keys)| keys);
        let in_scope = |looked: &&InNamespace| {
            object.name.namespace.is_empty()
                || looked.namespace.is_empty()
                || *object.name.namespace == *looked.namespace
        };
        by_name.chain(by_selector).filter(in_scope).map(|looked| looked.key.clone()).collect()
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
        let (Query::Get { kind, namespace, .. } | Query::Select { kind, namespace, .. }) = query;
        let namespace = namespace.clone().unwrap_or_else(|| key.object.namespace.to_string());
        let waiting = self.by_kind.entry(kind.clone()).or_default();
        let looked = match query {
            Query::Get { name, .. } => waiting.names.entry(name.clone()),
            Query::Select { selector, .. } => waiting.selectors.entry(selector.clone()),
        };
        looked.or_default().insert(InNamespace { namespace, key: key.clone() });
    }

    fn forget(&mut self, key: &Key) {
        if self.by_key.remove(key).is_none() {
            return;
        }
        for waiting in self.by_kind.values_mut() {
            for looked in [&mut waiting.names, &mut waiting.selectors] {
                looked.retain(|_, keys| {
                    keys.retain(|looked| looked.key != *key);
                    !keys.is_empty()
                });
            }
        }
        self.by_kind.retain(|_, waiting| !waiting.names.is_empty() || !waiting.selectors.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str) -> Key {
        Key { plugin: "p".into(), object: Name::new("ns", name) }
    }

    fn kind() -> KindRef {
        KindRef::new("v1", "ConfigMap")
    }

    fn get(namespace: Option<&str>, name: &str) -> Query {
        Query::Get { kind: kind(), namespace: namespace.map(str::to_owned), name: name.to_owned() }
    }

    fn select(selector: &str) -> Query {
        Query::Select { kind: kind(), namespace: None, selector: selector.to_owned() }
    }

    fn object(namespace: &str, name: &str, label: &str) -> Object {
        Object { labels: [("app".into(), label.into())].into(), ..Object::sample(namespace, name) }
    }

    #[test]
    fn a_change_wakes_those_who_looked_also_for_what_was_not_there() {
        let index = LookupIndex::default();
        index.record(&key("by-name"), vec![get(None, "settings")]);
        index.record(&key("elsewhere"), vec![get(Some("other"), "settings")]);
        index.record(&key("by-selector"), vec![select("app=web")]);
        let woken = |object: Object| {
            let mut names: Vec<_> =
                index.affected(&kind(), &object).iter().map(|key| key.object.name.to_string()).collect();
            names.sort();
            names
        };
        assert_eq!(woken(object("ns", "settings", "db")), ["by-name"]);
        assert_eq!(woken(object("other", "settings", "web")), ["elsewhere"]);
        assert_eq!(woken(object("ns", "settings", "web")), ["by-name", "by-selector"]);
        assert_eq!(
            woken(object("", "settings", "db")),
            ["by-name", "elsewhere"],
            "cluster-scoped objects are everywhere"
        );
        assert!(index.affected(&KindRef::new("v1", "Secret"), &object("ns", "settings", "web")).is_empty());
    }

    #[test]
    fn what_is_no_longer_looked_up_wakes_nobody() {
        let index = LookupIndex::default();
        index.record(&key("a"), vec![get(None, "one"), select("app")]);
        index.record(&key("a"), vec![get(None, "two")]);
        assert!(index.affected(&kind(), &object("ns", "one", "x")).is_empty());
        assert_eq!(index.users_of(&kind()), [key("a")]);
        index.forget(&key("a"));
        assert!(index.users_of(&kind()).is_empty());
        assert!(index.lock().by_kind.is_empty(), "nothing is left behind");
    }
}
