//! The reverse index of lookups: which keys to reconcile when an object changes, including keys that looked up an object before it
//! existed. Answers no lookup.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

use pilothouse_engine::{Query, Scope, Selector, Target, contract::KindRef};

use crate::{object::Object, queue::Key};

/// The reverse index of lookups: from a changed object to the keys that looked it up.
#[derive(Debug, Default)]
pub struct LookupIndex {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    by_key: BTreeMap<Key, Vec<Query>>,
    by_kind: BTreeMap<KindRef, KindIndex>,
}

/// The lookups of one kind, by name and by label selector.
#[derive(Debug, Default)]
struct KindIndex {
    names: BTreeMap<String, BTreeSet<ScopedKey>>,
    selectors: BTreeMap<String, BTreeSet<ScopedKey>>,
}

/// A key and the namespace of its lookup; empty for all namespaces. A cluster-scoped object matches every namespace.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ScopedKey {
    namespace: String,
    key: Key,
}

impl LookupIndex {
    /// Replaces a key's lookups with those of its latest call.
    pub fn record(&self, key: &Key, queries: Vec<Query>) {
        let mut inner = self.lock();
        if inner.by_key.get(key).map_or(queries.is_empty(), |known| *known == queries) {
            return;
        }
        // The lock is held for both steps. A change between them would find neither the previous lookups nor the new ones.
        inner.forget(key);
        for query in &queries {
            inner.index(key, query);
        }
        if !queries.is_empty() {
            inner.by_key.insert(key.clone(), queries);
        }
    }

    /// Adds a lookup of a call in progress. Must come before the answer, so that no change in between is missed.
    pub fn add(&self, key: &Key, query: Query) {
        let mut inner = self.lock();
        if inner.by_key.get(key).is_some_and(|known| known.contains(&query)) {
            return;
        }
        inner.index(key, &query);
        inner.by_key.entry(key.clone()).or_default().push(query);
    }

    /// The number of keys with lookups.
    pub fn len(&self) -> usize {
        self.lock().by_key.len()
    }

    /// Whether no key has lookups.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets a key whose object is deleted.
    pub fn forget(&self, key: &Key) {
        self.lock().forget(key);
    }

    /// Forgets all keys of a removed plugin.
    pub fn forget_plugin(&self, plugin: &str) {
        let mut inner = self.lock();
        let keys: Vec<_> = inner.by_key.keys().filter(|key| &*key.plugin == plugin).cloned().collect();
        keys.iter().for_each(|key| inner.forget(key));
    }

    /// The keys to reconcile because of this state of an object, in an order that depends on nothing else.
    pub fn affected(&self, kind: &KindRef, object: &Object) -> Vec<Key> {
        let inner = self.lock();
        let Some(by_query) = inner.by_kind.get(kind) else { return Vec::new() };
        let selects = |selector: &str| {
            Selector::parse(selector).is_ok_and(|selector| selector.matches(|key| object.labels.get(key)))
        };
        let by_name = by_query.names.get(&*object.name.name).into_iter().flatten();
        let by_selector =
            by_query.selectors.iter().filter(|(selector, _)| selects(selector)).flat_map(|(_, keys)| keys);
        let in_scope = |entry: &&ScopedKey| {
            object.name.namespace.is_empty() || entry.namespace.is_empty() || *object.name.namespace == *entry.namespace
        };
        by_name.chain(by_selector).filter(in_scope).map(|entry| entry.key.clone()).collect()
    }

    /// All keys with a lookup of this kind.
    pub fn users_of(&self, kind: &KindRef) -> Vec<Key> {
        let inner = self.lock();
        let uses = |queries: &Vec<Query>| queries.iter().any(|query| query.kind == *kind);
        inner.by_key.iter().filter(|(_, queries)| uses(queries)).map(|(key, _)| key.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn index(&mut self, key: &Key, query: &Query) {
        let by_query = self.by_kind.entry(query.kind.clone()).or_default();
        let keys = match &query.target {
            Target::Name(name) => by_query.names.entry(name.clone()),
            Target::Labels(selector) => by_query.selectors.entry(selector.clone()),
        };
        keys.or_default().insert(ScopedKey::of(key, query));
    }

    /// Removes a key. Its own queries name all entries, so nothing needs to be searched.
    fn forget(&mut self, key: &Key) {
        for query in self.by_key.remove(key).unwrap_or_default() {
            self.remove(key, &query);
        }
    }

    fn remove(&mut self, key: &Key, query: &Query) {
        let Some(by_query) = self.by_kind.get_mut(&query.kind) else { return };
        let (entries, requested) = match &query.target {
            Target::Name(name) => (&mut by_query.names, name),
            Target::Labels(selector) => (&mut by_query.selectors, selector),
        };
        if let Some(keys) = entries.get_mut(requested) {
            keys.remove(&ScopedKey::of(key, query));
            if keys.is_empty() {
                entries.remove(requested);
            }
        }
        if by_query.names.is_empty() && by_query.selectors.is_empty() {
            self.by_kind.remove(&query.kind);
        }
    }
}

impl ScopedKey {
    /// The key together with the namespace of one of its queries.
    fn of(key: &Key, query: &Query) -> Self {
        let namespace = match &query.scope {
            Scope::Namespace(namespace) => namespace.clone(),
            // Empty for a cluster-scoped object, whose lookups are everywhere or denied.
            Scope::OwnNamespace | Scope::OwnNamespaceIfAny => key.object.namespace.to_string(),
            Scope::AllNamespaces => String::new(),
        };
        Self { namespace, key: key.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::ObjectRef;

    fn key(name: &str) -> Key {
        Key { plugin: "p".into(), object: ObjectRef::new("ns", name) }
    }

    fn kind() -> KindRef {
        KindRef::new("v1", "ConfigMap")
    }

    fn get(namespace: Option<&str>, name: &str) -> Query {
        let scope = namespace.map_or(Scope::OwnNamespace, |namespace| Scope::Namespace(namespace.to_owned()));
        Query::by_name(kind(), scope, name)
    }

    fn select(selector: &str) -> Query {
        Query::by_labels(kind(), Scope::OwnNamespace, selector)
    }

    fn object(namespace: &str, name: &str, label: &str) -> Object {
        Object { labels: [("app", label)].into_iter().collect(), ..Object::sample(namespace, name) }
    }

    #[test]
    fn a_change_wakes_those_who_looked_also_for_what_was_not_there() {
        let index = LookupIndex::default();
        index.record(&key("by-name"), vec![get(None, "settings")]);
        index.record(&key("elsewhere"), vec![get(Some("other"), "settings")]);
        index.record(&key("by-selector"), vec![select("app=web")]);
        let everywhere = Query { scope: Scope::AllNamespaces, ..select("app=everywhere") };
        index.record(&key("everywhere"), vec![everywhere]);
        let woken = |object: Object| {
            let mut names: Vec<_> =
                index.affected(&kind(), &object).iter().map(|key| key.object.name.to_string()).collect();
            names.sort();
            names
        };
        assert_eq!(woken(object("ns", "settings", "db")), ["by-name"]);
        assert_eq!(woken(object("other", "settings", "web")), ["elsewhere"]);
        assert_eq!(woken(object("ns", "settings", "web")), ["by-name", "by-selector"]);
        assert_eq!(woken(object("third", "any", "everywhere")), ["everywhere"]);
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

    #[test]
    fn a_lookup_counts_from_the_moment_it_is_made() {
        let index = LookupIndex::default();
        index.add(&key("a"), get(None, "one"));
        index.add(&key("a"), get(None, "one"));
        assert_eq!(index.affected(&kind(), &object("ns", "one", "x")), [key("a")]);
        index.record(&key("a"), Vec::new());
        assert!(index.affected(&kind(), &object("ns", "one", "x")).is_empty(), "the call made other lookups");
    }

    #[test]
    fn a_plugin_that_is_gone_leaves_nothing_behind() {
        let index = LookupIndex::default();
        index.record(&key("a"), vec![get(None, "one"), select("app"), get(Some("other"), "one")]);
        index.forget_plugin("another");
        assert_eq!(index.users_of(&kind()), [key("a")]);
        index.forget_plugin("p");
        let inner = index.lock();
        assert!(inner.by_kind.is_empty() && inner.by_key.is_empty());
    }
}
