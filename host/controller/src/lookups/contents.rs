//! What is in objects of which the host watches the metadata alone, as it does of the Secrets that plugins may look up. They are read when an
//! object looks them up, and kept as long as one does. Reads nothing itself.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pilothouse_engine::Fingerprint;

use crate::{
    cache::Informer,
    object::{Object, ObjectRef},
    queue::Key,
};

/// What is in objects of which only the metadata is watched.
#[derive(Debug, Default)]
pub struct Contents(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    by_place: HashMap<Place, Kept>,
    by_user: BTreeMap<Key, BTreeSet<Place>>,
}

/// The kind of an object as its informer names it, and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Group, version and kind.
    kind: (Box<str>, Box<str>),
    name: ObjectRef,
}

#[derive(Debug)]
struct Kept {
    /// The state that the watch told of when it was read. What was read may be newer.
    told: Fingerprint,
    /// None if it was gone.
    read: Option<Arc<Object>>,
    users: usize,
}

/// An object that a lookup needs whole and that is to be read.
#[derive(Clone)]
pub struct ToRead {
    /// Its informer, which says how it is read.
    pub informer: Arc<Informer>,
    /// What the watch tells of it.
    pub told: Arc<Object>,
}

impl Place {
    /// The place of an object that an informer tells of.
    pub fn of(informer: &Informer, object: &Object) -> Self {
        let kind = informer.kind();
        Self { kind: (kind.api_version.as_str().into(), kind.kind.as_str().into()), name: object.name.clone() }
    }
}

impl Contents {
    /// An object whole, as it is by what the watch tells of it, or newer; none inside if it was gone when it was read, and none at all if it
    /// is to be read.
    pub fn of(&self, place: &Place, told: &Object) -> Option<Option<Arc<Object>>> {
        let state = told.fingerprint();
        let inner = self.lock();
        let kept = inner.by_place.get(place)?;
        let is_it = kept.told == state || kept.read.as_ref().is_some_and(|read| read.fingerprint() == state);
        is_it.then(|| kept.read.clone())
    }

    /// Keeps an object that was read for a key.
    pub fn put(&self, user: &Key, place: Place, told: &Object, read: Option<Object>) {
        let mut inner = self.lock();
        let is_new_user = inner.by_user.entry(user.clone()).or_default().insert(place.clone());
        let users = inner.by_place.get(&place).map_or(0, |kept| kept.users) + usize::from(is_new_user);
        inner.by_place.insert(place, Kept { told: told.fingerprint(), read: read.map(Arc::new), users });
    }

    /// A key has looked up these, and nothing else. What nobody looks up any more is forgotten.
    pub fn use_only(&self, user: &Key, used: BTreeSet<Place>) {
        let mut inner = self.lock();
        if used.is_empty() && !inner.by_user.contains_key(user) {
            return;
        }
        let before = inner.by_user.remove(user).unwrap_or_default();
        for place in used.difference(&before) {
            inner.by_place.entry(place.clone()).and_modify(|kept| kept.users += 1);
        }
        for place in before.difference(&used) {
            inner.give_up(place);
        }
        // What was forgotten meanwhile is read again when it is needed.
        let kept: BTreeSet<_> = used.into_iter().filter(|place| inner.by_place.contains_key(place)).collect();
        if !kept.is_empty() {
            inner.by_user.insert(user.clone(), kept);
        }
    }

    /// Forgets a key.
    pub fn forget(&self, user: &Key) {
        self.use_only(user, BTreeSet::new());
    }

    /// Forgets all keys of a plugin.
    pub fn forget_plugin(&self, plugin: &str) {
        let users: Vec<_> = self.lock().by_user.keys().filter(|user| &*user.plugin == plugin).cloned().collect();
        users.iter().for_each(|user| self.forget(user));
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn give_up(&mut self, place: &Place) {
        let Some(kept) = self.by_place.get_mut(place) else { return };
        kept.users -= 1;
        if kept.users == 0 {
            self.by_place.remove(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(name: &str) -> Place {
        Place { kind: ("v1".into(), "Secret".into()), name: ObjectRef::new("ns", name) }
    }

    fn key(name: &str) -> Key {
        Key { plugin: "p".into(), object: ObjectRef::new("ns", name) }
    }

    fn state(name: &str, version: &str) -> Object {
        Object { resource_version: version.into(), ..Object::sample("ns", name) }
    }

    fn is_empty(contents: &Contents) -> bool {
        let inner = contents.lock();
        inner.by_place.is_empty() && inner.by_user.is_empty()
    }

    #[test]
    fn what_was_read_counts_until_the_watch_tells_of_another_state() {
        let contents = Contents::default();
        assert_eq!(contents.of(&place("a"), &state("a", "1")), None);
        // It changed between the news of the watch and the read.
        contents.put(&key("web"), place("a"), &state("a", "1"), Some(state("a", "3")));
        let version = |told: &str| {
            let found = contents.of(&place("a"), &state("a", told)).flatten();
            found.map(|found| found.resource_version.to_string())
        };
        assert_eq!(version("1").as_deref(), Some("3"), "the watch is behind");
        assert_eq!(version("3").as_deref(), Some("3"));
        assert_eq!(version("2"), None, "nobody knows which of the two is newer");
        assert_eq!(version("4"), None);
        contents.put(&key("web"), place("b"), &state("b", "1"), None);
        assert_eq!(contents.of(&place("b"), &state("b", "1")), Some(None), "it is gone");
        assert_eq!(contents.of(&place("b"), &state("b", "2")), None, "it is there again");
    }

    #[test]
    fn what_nobody_looks_up_any_more_is_forgotten() {
        let contents = Contents::default();
        let is_kept = |name: &str| contents.of(&place(name), &state(name, "1")).is_some();
        for user in ["one", "two"] {
            for name in ["a", "b"] {
                contents.put(&key(user), place(name), &state(name, "1"), Some(state(name, "1")));
            }
        }
        contents.use_only(&key("one"), [place("a")].into());
        contents.use_only(&key("two"), [place("a")].into());
        assert!(is_kept("a") && !is_kept("b"));
        // One that did not read it itself.
        contents.use_only(&key("three"), [place("a"), place("never read")].into());
        contents.forget(&key("one"));
        contents.forget(&key("two"));
        assert!(is_kept("a"));
        contents.forget_plugin("another");
        assert!(is_kept("a"));
        contents.forget_plugin("p");
        assert!(!is_kept("a") && is_empty(&contents), "nothing is left behind");
    }
}
