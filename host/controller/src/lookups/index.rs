//! The reverse index of lookups: which keys to reconcile when an object changes, including keys that looked up an object before it
//! existed. Answers no lookup. Names are kept as fingerprints: two of them with the same one would only wake an object in vain.
//!
//! What is remembered has a bound (`memory.rs`). A lookup for which there is no room is not indexed, and its call must not count.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pilothouse_engine::{Fingerprint, Query, Scope, Selector, Target, contract::KindRef};

use super::memory::{LookupMemory, NoRoom, bytes_of};
use crate::{object::Object, queue::Key};

/// The reverse index of lookups: from a changed object to the keys that looked it up.
#[derive(Debug)]
pub struct LookupIndex {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    by_key: BTreeMap<Key, KeyLookups>,
    /// The keys by their numbers.
    keys: BTreeMap<u64, Key>,
    /// The number of the next key.
    next: u64,
    names: BTreeSet<NamedLookup>,
    /// By the kind, and by the selector itself.
    selectors: BTreeMap<Fingerprint, BTreeMap<Arc<str>, BTreeSet<ScopedKey>>>,
    memory: LookupMemory,
}

/// The lookups of a key.
#[derive(Debug, Default)]
struct KeyLookups {
    number: u64,
    lookups: BTreeSet<IndexedLookup>,
    /// What it takes to remember them.
    bytes: usize,
}

/// A lookup of a key, as it is indexed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct IndexedLookup {
    kind: Fingerprint,
    namespace: Fingerprint,
    target: IndexedTarget,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum IndexedTarget {
    /// The kind and the name.
    Name(Fingerprint),
    Labels(Arc<str>),
}

/// A key that has looked up a name of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct NamedLookup {
    name: Fingerprint,
    by: ScopedKey,
}

/// The number of a key, and the namespace of its lookup; that of no namespace for all of them. A cluster-scoped object matches every
/// namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ScopedKey {
    number: u64,
    namespace: Fingerprint,
}

impl Default for LookupIndex {
    /// An index without a bound.
    fn default() -> Self {
        Self::within(usize::MAX)
    }
}

impl LookupIndex {
    /// An index of lookups that take so many bytes at most, with what else is remembered of them.
    pub fn within(bytes: usize) -> Self {
        let inner = Inner {
            by_key: BTreeMap::new(),
            keys: BTreeMap::new(),
            next: 0,
            names: BTreeSet::new(),
            selectors: BTreeMap::new(),
            memory: LookupMemory::of(bytes),
        };
        Self { inner: Mutex::new(inner) }
    }

    /// Replaces a key's lookups with those of its latest call, which have been added.
    pub fn record<'q>(&self, key: &Key, queries: impl IntoIterator<Item = &'q Query>) {
        let mut inner = self.lock();
        let wanted: BTreeMap<_, _> =
            queries.into_iter().map(|query| (IndexedLookup::of(key, query), bytes_of(query))).collect();
        let known = inner.by_key.get(key).map(|known| &known.lookups);
        if known.map_or(wanted.is_empty(), |known| known.iter().eq(wanted.keys())) {
            return;
        }
        // The lock is held for both steps. A change between them would find neither the previous lookups nor the new ones.
        inner.forget(key);
        for (lookup, bytes) in wanted {
            inner.index(key, lookup, bytes);
        }
    }

    /// Adds a lookup of a call in progress. Must come before the answer, so that no change in between is missed.
    ///
    /// # Errors
    /// [`NoRoom`] if nothing more can be remembered for the plugin.
    pub fn add(&self, key: &Key, query: &Query) -> Result<(), NoRoom> {
        let mut inner = self.lock();
        let lookup = IndexedLookup::of(key, query);
        if inner.by_key.get(key).is_some_and(|known| known.lookups.contains(&lookup)) {
            return Ok(());
        }
        let bytes = bytes_of(query);
        inner.memory.check(&key.plugin, bytes)?;
        inner.index(key, lookup, bytes);
        Ok(())
    }

    /// The number of keys with lookups.
    pub fn len(&self) -> usize {
        self.lock().by_key.len()
    }

    /// Whether no key has lookups.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets a key whose object is deleted, or whose call does not count.
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
        let name = name_of(kind, &object.name.name);
        let by_name = inner.names.range(NamedLookup::first(name)..).take_while(|named| named.name == name);
        let selects = |selector: &str| {
            Selector::parse(selector).is_ok_and(|selector| selector.matches(|key| object.labels.get(key)))
        };
        let selectors = inner.selectors.get(&Fingerprint::of(kind)).into_iter().flatten();
        let by_selector = selectors.filter(|(selector, _)| selects(selector)).flat_map(|(_, keys)| keys);
        let (own, all) = (Fingerprint::of(&*object.name.namespace), Fingerprint::of(""));
        let in_scope = |by: &&ScopedKey| own == all || by.namespace == all || by.namespace == own;
        let keys = by_name.map(|named| &named.by).chain(by_selector).filter(in_scope);
        let mut keys: Vec<_> = keys.filter_map(|by| inner.keys.get(&by.number).cloned()).collect();
        keys.sort();
        keys.dedup();
        keys
    }

    /// All keys with a lookup of this kind.
    pub fn users_of(&self, kind: &KindRef) -> Vec<Key> {
        let (inner, kind) = (self.lock(), Fingerprint::of(kind));
        let uses = |known: &KeyLookups| known.lookups.iter().any(|lookup| lookup.kind == kind);
        inner.by_key.iter().filter(|(_, known)| uses(known)).map(|(key, _)| key.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn index(&mut self, key: &Key, lookup: IndexedLookup, bytes: usize) {
        if !self.by_key.contains_key(key) {
            self.keys.insert(self.next, key.clone());
            self.by_key.insert(key.clone(), KeyLookups { number: self.next, ..KeyLookups::default() });
            self.next += 1;
        }
        let Some(known) = self.by_key.get_mut(key) else { return };
        let by = ScopedKey { number: known.number, namespace: lookup.namespace };
        match &lookup.target {
            IndexedTarget::Name(name) => {
                self.names.insert(NamedLookup { name: *name, by });
            }
            IndexedTarget::Labels(selector) => {
                let selectors = self.selectors.entry(lookup.kind).or_default();
                selectors.entry(selector.clone()).or_default().insert(by);
            }
        }
        if known.lookups.insert(lookup) {
            known.bytes += bytes;
            self.memory.take(&key.plugin, bytes);
        }
    }

    /// Removes a key. Its own lookups name all entries, so nothing needs to be searched.
    fn forget(&mut self, key: &Key) {
        let Some(known) = self.by_key.remove(key) else { return };
        self.keys.remove(&known.number);
        self.memory.give_back(&key.plugin, known.bytes);
        for lookup in &known.lookups {
            self.remove(known.number, lookup);
        }
    }

    fn remove(&mut self, number: u64, lookup: &IndexedLookup) {
        let by = ScopedKey { number, namespace: lookup.namespace };
        let selector = match &lookup.target {
            IndexedTarget::Name(name) => {
                self.names.remove(&NamedLookup { name: *name, by });
                return;
            }
            IndexedTarget::Labels(selector) => selector,
        };
        let Some(selectors) = self.selectors.get_mut(&lookup.kind) else { return };
        if let Some(keys) = selectors.get_mut(selector) {
            keys.remove(&by);
            if keys.is_empty() {
                selectors.remove(selector);
            }
        }
        if selectors.is_empty() {
            self.selectors.remove(&lookup.kind);
        }
    }
}

impl NamedLookup {
    /// What comes before all keys that have looked up this name.
    fn first(name: Fingerprint) -> Self {
        Self { name, by: ScopedKey { number: 0, namespace: Fingerprint::LEAST } }
    }
}

impl IndexedLookup {
    /// A lookup that an object with this key makes.
    fn of(key: &Key, query: &Query) -> Self {
        let namespace = match &query.scope {
            Scope::Namespace(namespace) => namespace,
            // Empty for a cluster-scoped object, whose lookups are everywhere or denied.
            Scope::OwnNamespace | Scope::OwnNamespaceIfAny => &*key.object.namespace,
            Scope::AllNamespaces => "",
        };
        let target = match &query.target {
            Target::Name(name) => IndexedTarget::Name(name_of(&query.kind, name)),
            Target::Labels(selector) => IndexedTarget::Labels(selector.as_str().into()),
        };
        Self { kind: Fingerprint::of(&query.kind), namespace: Fingerprint::of(namespace), target }
    }
}

fn name_of(kind: &KindRef, name: &str) -> Fingerprint {
    Fingerprint::of(&(kind, name))
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
        index.record(&key("by-name"), &[get(None, "settings")]);
        index.record(&key("elsewhere"), &[get(Some("other"), "settings")]);
        index.record(&key("by-selector"), &[select("app=web")]);
        let everywhere = Query { scope: Scope::AllNamespaces, ..select("app=everywhere") };
        index.record(&key("everywhere"), &[everywhere]);
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
        index.record(&key("a"), &[get(None, "one"), select("app")]);
        index.record(&key("a"), &[get(None, "two")]);
        assert!(index.affected(&kind(), &object("ns", "one", "x")).is_empty());
        assert_eq!(index.users_of(&kind()), [key("a")]);
        index.forget(&key("a"));
        assert!(index.users_of(&kind()).is_empty());
        assert!(is_empty(&index), "nothing is left behind");
    }

    #[test]
    fn a_lookup_counts_from_the_moment_it_is_made() {
        let index = LookupIndex::default();
        for _ in 0..2 {
            assert!(index.add(&key("a"), &get(None, "one")).is_ok());
        }
        assert_eq!(index.affected(&kind(), &object("ns", "one", "x")), [key("a")]);
        index.record(&key("a"), &[]);
        assert!(index.affected(&kind(), &object("ns", "one", "x")).is_empty(), "the call made other lookups");
    }

    #[test]
    fn a_plugin_that_is_gone_leaves_nothing_behind() {
        let index = LookupIndex::default();
        index.record(&key("a"), &[get(None, "one"), select("app"), get(Some("other"), "one")]);
        index.forget_plugin("another");
        assert_eq!(index.users_of(&kind()), [key("a")]);
        index.forget_plugin("p");
        assert!(is_empty(&index));
    }

    #[test]
    fn what_a_plugin_may_not_have_remembered_is_refused_and_comes_back_when_it_forgets() {
        let lookup = get(None, "settings");
        let index = LookupIndex::within(8 * bytes_of(&lookup));
        let added = |name: &str| index.add(&key(name), &lookup).is_ok();
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        assert_eq!(names.map(added), [true, true, true, true, true, true, false], "a part is left for others");
        assert!(added("a"), "it is remembered already");
        let other = Key { plugin: "other".into(), ..key("a") };
        assert!(index.add(&other, &lookup).is_ok(), "another plugin has its part");
        assert_eq!(index.affected(&kind(), &object("ns", "settings", "x")).len(), 7);
        index.forget_plugin("other");
        index.record(&key("a"), &[]);
        assert!(added("g") && !added("a"));
        index.forget_plugin("p");
        assert!(is_empty(&index));
    }

    /// Whether nothing is left of anything.
    fn is_empty(index: &LookupIndex) -> bool {
        let inner = index.lock();
        let keys = inner.by_key.len() + inner.keys.len();
        keys == 0 && inner.names.is_empty() && inner.selectors.is_empty() && inner.memory.is_unused()
    }
}
