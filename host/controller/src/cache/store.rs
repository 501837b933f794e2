//! One kind's objects in memory, and what this process itself has written but the watch has not brought back yet.
//! Knows nothing of requests; a [`Change`] is all that comes out.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
    time::{Duration, Instant},
};

use super::object::{Name, Object};

/// An object before and after; equal states make no change.
#[derive(Clone, Debug)]
pub struct Change {
    /// The state known before, none if the object is new.
    pub before: Option<Arc<Object>>,
    /// The state now, none if the object is gone.
    pub after: Option<Arc<Object>>,
}

impl Change {
    /// The states that are there, the older first.
    pub fn states(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.before.iter().chain(self.after.iter())
    }
}

/// A cache of one kind.
#[derive(Debug, Default)]
pub struct Store {
    inner: RwLock<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    objects: BTreeMap<Name, Arc<Object>>,
    /// Names by the UID of the object they belong to.
    owned: HashMap<Box<str>, BTreeSet<Name>>,
    /// Names seen or written since a new listing began; none outside of a listing.
    listed: Option<HashSet<Name>>,
    /// UIDs of objects that this process knows to be gone, of which the watch may still bring older states.
    gone: HashSet<Box<str>>,
    /// Objects whose latest state is from an answer and which the watch has not brought yet, since when. One that was deleted
    /// just before a new listing stays here: no event tells of it any more.
    unconfirmed: HashMap<Name, Instant>,
    /// The version of the latest state that the watch brought, a deletion's included.
    reached: Option<Box<str>>,
    /// Whether one listing is complete.
    synced: bool,
}

impl Store {
    /// Whether the store has held a complete listing. Absence means nothing before.
    pub fn is_synced(&self) -> bool {
        self.read().synced
    }

    /// The object of that name.
    pub fn get(&self, name: &Name) -> Option<Arc<Object>> {
        self.read().objects.get(name).cloned()
    }

    /// All objects that belong to the object with this UID, ordered by name.
    pub fn owned_by(&self, uid: &str) -> Vec<Arc<Object>> {
        let inner = self.read();
        let names = inner.owned.get(uid).into_iter().flatten();
        names.filter_map(|name| inner.objects.get(name).cloned()).collect()
    }

    /// All names, in order.
    pub fn names(&self) -> Vec<Name> {
        self.read().objects.keys().cloned().collect()
    }

    /// All objects of one namespace (or all, where none is given) that a predicate accepts, ordered by name.
    pub fn select(&self, namespace: Option<&str>, accepts: impl Fn(&Object) -> bool) -> Vec<Arc<Object>> {
        let in_scope = |object: &Object| namespace.is_none_or(|namespace| *object.name.namespace == *namespace);
        self.read().objects.values().filter(|object| in_scope(object) && accepts(object)).cloned().collect()
    }

    /// How many objects it holds.
    pub fn len(&self) -> usize {
        self.read().objects.len()
    }

    /// Whether it holds no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A watch brought this state.
    pub(crate) fn saw(&self, object: Object) -> Option<Change> {
        let mut inner = self.write();
        inner.reach(&object);
        inner.confirm(&object);
        inner.put(object)
    }

    /// A watch saw this object deleted.
    pub(crate) fn saw_deleted(&self, object: &Object) -> Option<Change> {
        let mut inner = self.write();
        inner.reach(object);
        inner.gone.remove(&object.uid);
        // A later object of the same name is another one: its own events speak for it.
        let same = inner.objects.get(&object.name).is_some_and(|known| known.uid == object.uid);
        if same { inner.remove(&object.name) } else { None }
    }

    /// A new listing begins.
    pub(crate) fn listing_begins(&self) {
        let mut inner = self.write();
        inner.listed = Some(HashSet::new());
        // What is listed from here on has seen every delete until now.
        inner.gone.clear();
    }

    /// The listing is complete: what it did not bring is gone.
    pub(crate) fn listing_done(&self) -> Vec<Change> {
        let mut inner = self.write();
        inner.synced = true;
        let Some(listed) = inner.listed.take() else { return Vec::new() };
        let gone: Vec<_> = inner.objects.keys().filter(|name| !listed.contains(*name)).cloned().collect();
        gone.iter().filter_map(|name| inner.remove(name)).collect()
    }

    /// The kind is no longer installed: nothing is known until the next complete listing.
    pub(crate) fn forget(&self) {
        *self.write() = Inner::default();
    }

    /// This process wrote the object and got this state back. Makes no change: who wrote knows. The last states of an object
    /// can come back after its watch has seen it deleted: they are not taken, or it would be there for ever. A watch that is
    /// past a state without knowing its object has seen that go, whoever deleted it.
    pub(crate) fn wrote(&self, object: Object) {
        let mut inner = self.write();
        let is_known = inner.objects.get(&object.name).is_some_and(|known| known.uid == object.uid);
        if !is_known && (object.deleting || inner.is_past(&object)) {
            return;
        }
        inner.gone.remove(&object.uid);
        let name = object.name.clone();
        if inner.put(object).is_some() {
            inner.unconfirmed.insert(name, Instant::now());
        }
    }

    /// Whether the watch has not brought a write of this process for longer than this. Only a new listing tells what became
    /// of it: none is missed while there is one.
    pub(crate) fn misses_a_write(&self, patience: Duration) -> bool {
        let inner = self.read();
        inner.listed.is_none() && inner.unconfirmed.values().any(|since| since.elapsed() > patience)
    }

    /// The object is gone, and its watch has yet to say so: until then it is one that is being deleted and held by nobody,
    /// whatever comes late.
    pub(crate) fn ended(&self, object: &Object) {
        let mut inner = self.write();
        if let Some(known) = inner.objects.get(&object.name).filter(|known| known.uid == object.uid) {
            let last = Object { deleting: true, finalizers: Vec::new(), ..(**known).clone() };
            inner.gone.insert(last.uid.clone());
            inner.objects.insert(last.name.clone(), Arc::new(last));
        }
    }

    /// The object is gone: this process deleted it, or looked for it in vain. Makes no change: who wrote knows.
    pub(crate) fn removed(&self, object: &Object) {
        let mut inner = self.write();
        inner.gone.insert(object.uid.clone());
        if inner.objects.get(&object.name).is_some_and(|known| known.uid == object.uid) {
            inner.remove(&object.name);
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// Notes how far the watch is.
    fn reach(&mut self, object: &Object) {
        if self.reached.as_ref().is_none_or(|reached| object.is_newer_than(reached)) {
            self.reached = Some(object.resource_version.clone());
        }
    }

    /// Notes that the watch has brought this state of an object, or a later one than the known.
    fn confirm(&mut self, object: &Object) {
        if self.unconfirmed.is_empty() {
            return;
        }
        let known = self.objects.get(&object.name);
        if known.is_none_or(|known| !known.is_newer_than(&object.resource_version)) {
            self.unconfirmed.remove(&object.name);
        }
    }

    /// Whether the watch has brought this state, or a later one of any object: it brings them in the order of their versions,
    /// which a listing does not.
    fn is_past(&self, object: &Object) -> bool {
        self.listed.is_none() && self.reached.as_ref().is_some_and(|reached| !object.is_newer_than(reached))
    }

    /// Takes a state unless a later one is known, be it of another object (UID) of the same name: a watch that is behind
    /// still tells of the object that was there before.
    fn put(&mut self, object: Object) -> Option<Change> {
        if let Some(listed) = &mut self.listed {
            listed.insert(object.name.clone());
        }
        let known = self.objects.get(&object.name);
        let is_old = known.is_some_and(|known| !object.is_newer_than(&known.resource_version));
        if is_old || self.gone.contains(&object.uid) {
            return None;
        }
        let before = self.remove(&object.name).and_then(|change| change.before);
        let after = Arc::new(object);
        if let Some(uid) = after.owner_uid() {
            self.owned.entry(uid.into()).or_default().insert(after.name.clone());
        }
        self.objects.insert(after.name.clone(), after.clone());
        Some(Change { before, after: Some(after) })
    }

    fn remove(&mut self, name: &Name) -> Option<Change> {
        let before = self.objects.remove(name)?;
        self.unconfirmed.remove(name);
        if let Some(uid) = before.owner_uid()
            && let Some(names) = self.owned.get_mut(uid)
        {
            names.remove(name);
            if names.is_empty() {
                self.owned.remove(uid);
            }
        }
        Some(Change { before: Some(before), after: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::object::ControllerRef;

    fn object(name: &str, uid: &str, version: &str, owner: Option<&str>) -> Object {
        Object {
            uid: uid.into(),
            resource_version: version.into(),
            controller: owner.map(|uid| ControllerRef {
                api_version: "e/v1".into(),
                kind: "Owner".into(),
                name: "owner".into(),
                uid: uid.into(),
            }),
            ..Object::sample("ns", name)
        }
    }

    #[test]
    fn own_writes_are_read_back_and_their_echo_is_no_change() {
        let store = Store::default();
        store.saw(object("a", "1", "5", None));
        store.wrote(object("a", "1", "7", Some("o")));
        assert_eq!(store.owned_by("o").len(), 1);
        assert!(store.saw(object("a", "1", "6", None)).is_none(), "an older state is ignored");
        assert!(store.saw(object("a", "1", "7", Some("o"))).is_none(), "the echo is no change");
        assert!(store.saw(object("a", "1", "8", None)).is_some());
        assert!(store.owned_by("o").is_empty());
    }

    #[test]
    fn the_answer_to_a_write_does_not_bring_back_what_somebody_deleted_since() {
        for known_before in [true, false] {
            let store = Store::default();
            if known_before {
                store.saw(object("a", "1", "5", Some("o")));
            }
            store.saw(object("a", "1", "7", Some("o")));
            assert!(store.saw_deleted(&object("a", "1", "8", Some("o"))).is_some());
            store.wrote(object("a", "1", "7", Some("o")));
            assert!(store.is_empty(), "the watch has seen it go");
            store.wrote(object("a", "2", "9", Some("o")));
            assert_eq!(store.len(), 1, "another one is news");
        }
    }

    #[test]
    fn the_answer_to_a_delete_does_not_bring_back_what_the_watch_saw_go() {
        let terminating = |version| Object { deleting: true, ..object("a", "1", version, Some("o")) };
        let store = Store::default();
        store.saw(object("a", "1", "5", Some("o")));
        store.wrote(terminating("6"));
        assert!(store.owned_by("o").iter().all(|known| known.deleting), "it takes its time");
        assert!(store.saw_deleted(&terminating("7")).is_some());
        store.wrote(terminating("6"));
        assert!(store.owned_by("o").is_empty(), "the answer came late");
        store.saw(object("a", "2", "9", Some("o")));
        store.wrote(terminating("6"));
        assert_eq!(store.owned_by("o").len(), 1, "and is not about its successor");
    }

    #[test]
    fn a_write_that_the_watch_never_brings_is_missed_until_a_listing_tells() {
        let store = Store::default();
        store.wrote(object("a", "1", "5", Some("o")));
        assert!(store.misses_a_write(Duration::ZERO) && !store.misses_a_write(Duration::from_secs(3_600)));
        store.saw(object("a", "1", "4", Some("o")));
        assert!(store.misses_a_write(Duration::ZERO), "an older state tells nothing");
        store.saw(object("a", "1", "5", Some("o")));
        assert!(!store.misses_a_write(Duration::ZERO), "its echo");
        store.wrote(object("a", "1", "5", Some("o")));
        assert!(!store.misses_a_write(Duration::ZERO), "an answer that tells nothing new");
        store.wrote(object("a", "1", "7", Some("o")));
        store.saw(object("a", "1", "8", Some("o")));
        assert!(!store.misses_a_write(Duration::ZERO), "a later state");

        // Deleted before the listing, answered during it: no event will come.
        store.listing_begins();
        store.wrote(object("b", "2", "9", Some("o")));
        store.saw(object("a", "1", "8", Some("o")));
        assert!(store.listing_done().is_empty());
        assert!(store.misses_a_write(Duration::ZERO));
        store.listing_begins();
        store.saw(object("a", "1", "8", Some("o")));
        assert_eq!(store.listing_done().len(), 1, "now it is known to be gone");
        assert!(!store.misses_a_write(Duration::ZERO));
    }

    #[test]
    fn another_object_of_the_same_name_counts_if_it_came_later() {
        let store = Store::default();
        store.saw(object("a", "1", "3", None));
        assert!(store.saw(object("a", "2", "9", None)).is_some());
        assert!(store.saw(object("a", "1", "5", None)).is_none(), "a late word of the first one");
        assert!(store.saw_deleted(&object("a", "1", "6", None)).is_none(), "a late delete of the first one");
        assert_eq!(store.get(&Name::new("ns", "a")).map(|known| known.uid.clone()), Some("2".into()));
    }

    #[test]
    fn what_is_gone_stays_gone_whatever_comes_late() {
        let store = Store::default();
        let first = object("a", "1", "3", None);
        store.saw(first.clone());
        store.removed(&first);
        assert!(store.saw(object("a", "1", "4", None)).is_none(), "a word from before its end");
        assert!(store.saw_deleted(&object("a", "1", "5", None)).is_none(), "nothing new");
        assert!(store.is_empty() && store.read().gone.is_empty());
        store.removed(&first);
        store.wrote(object("a", "1", "6", None));
        assert_eq!(store.len(), 1, "what was written since is there");
    }

    #[test]
    fn what_has_ended_is_there_until_its_watch_says_so() {
        let store = Store::default();
        store.saw(object("a", "1", "3", None));
        store.ended(&object("a", "1", "3", None));
        assert!(store.saw(object("a", "1", "4", None)).is_none(), "a word from before its end");
        assert!(store.get(&Name::new("ns", "a")).is_some_and(|last| last.deleting));
        assert!(store.saw_deleted(&object("a", "1", "5", None)).is_some());
        assert!(store.is_empty() && store.read().gone.is_empty());
    }

    #[test]
    fn a_new_listing_removes_what_it_does_not_bring() {
        let store = Store::default();
        assert!(!store.is_synced());
        store.listing_begins();
        store.saw(object("a", "1", "1", None));
        store.saw(object("b", "2", "2", None));
        assert!(store.listing_done().is_empty());
        assert!(store.is_synced());
        store.listing_begins();
        store.saw(object("b", "2", "2", None));
        assert_eq!(store.len(), 2, "nothing goes before the listing is complete");
        let gone = store.listing_done();
        assert_eq!(gone.len(), 1);
        assert_eq!(store.names(), [Name::new("ns", "b")]);
    }

    #[test]
    fn what_is_written_during_a_listing_is_not_gone_for_it() {
        let store = Store::default();
        store.listing_begins();
        store.wrote(object("a", "1", "5", None));
        assert!(store.listing_done().is_empty());
        assert_eq!(store.len(), 1);
    }
}
