//! The objects of one kind in memory: what the watch delivered, and what this process wrote that the watch has not delivered
//! yet. Makes no request.
//!
//! Two sources write into the store, in any order: the watch and the responses to own requests. Three rules keep it right.
//!
//! 1. A state replaces another only if its resource version is newer.
//! 2. An object that this process deleted does not come back: its UID is remembered until the watch confirms the deletion.
//! 3. The response to a write is dropped if the watch has passed its resource version without knowing the object: somebody else
//!    deleted the object in the meantime.
//!
//! What has not changed for a while is packed ([`Store::pack`]): who gets it gets it unpacked.
//!
//! An own write that the watch does not deliver within a limit is overdue ([`Store::has_overdue_write`]); the informer then lists
//! the kind again.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard, Weak},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use super::{
    WatchScope,
    owned_names::NamesByOwner,
    shared_states::{Holder, SharedStates},
};
use crate::object::{Object, ObjectRef};

/// An object before and after a change. Two equal states are no change.
#[derive(Clone, Debug)]
pub struct Change {
    /// The previous state; none if the object is new.
    pub before: Option<Arc<Object>>,
    /// The present state; none if the object is deleted.
    pub after: Option<Arc<Object>>,
}

impl Change {
    /// The states that exist, the older one first.
    pub fn states(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.before.iter().chain(self.after.iter())
    }
}

/// The cached objects of one kind.
#[derive(Debug, Default)]
pub struct Store {
    shared: Arc<SharedStates>,
    inner: RwLock<Inner>,
    /// Told when there is an object to pack.
    news: Notify,
}

#[derive(Debug, Default)]
struct Inner {
    objects: BTreeMap<ObjectRef, Arc<Object>>,
    /// None where nobody asks for the objects of an owner.
    by_owner: Option<NamesByOwner>,
    /// Names delivered or written since the present listing began; none while no listing is under way.
    listed: Option<HashSet<ObjectRef>>,
    /// UIDs of objects that this process knows to be deleted. The watch may still deliver older states of them.
    deleted_uids: HashSet<Box<str>>,
    /// Objects whose latest state comes from a response and has not been delivered by the watch, with the time of the response.
    /// An object that was deleted just before a new listing stays in here, because no event will report its deletion.
    unconfirmed: HashMap<ObjectRef, Instant>,
    /// The newest resource version that the watch has delivered, deletions included.
    latest_version: Option<Box<str>>,
    /// Whether a listing has been completed.
    synced: bool,
    /// Another number after each change of what is there.
    version: u64,
    /// Objects that were not packed since they changed.
    unpacked: BTreeSet<ObjectRef>,
}

impl Store {
    /// An empty one for the objects of this scope, which shares its states with other stores of its kind.
    pub(super) fn sharing(shared: Arc<SharedStates>, scope: &WatchScope) -> Arc<Self> {
        let inner = Inner::for_objects(*scope == WatchScope::Children);
        let store = Arc::new(Self { shared, inner: RwLock::new(inner), news: Notify::new() });
        let holder: Weak<dyn Holder> = Arc::<Self>::downgrade(&store);
        store.shared.add(holder);
        store
    }

    /// What it shares with other stores of its kind.
    pub(super) fn shared(&self) -> &Arc<SharedStates> {
        &self.shared
    }

    /// Whether the store has held a complete listing. Before that, an object that is missing here may still exist.
    pub fn is_synced(&self) -> bool {
        self.read().synced
    }

    /// Another number after each change of what it holds.
    pub fn version(&self) -> u64 {
        self.read().version
    }

    /// The object with this name.
    pub fn get(&self, name: &ObjectRef) -> Option<Arc<Object>> {
        self.held(name).map(unpacked)
    }

    /// All objects whose owner has this UID, ordered by name. Only children are known by their owners.
    pub fn owned_by(&self, uid: &str) -> Vec<Arc<Object>> {
        let inner = self.read();
        let names = inner.by_owner.iter().flat_map(|names| names.of(uid));
        names.filter_map(|name| inner.objects.get(name).cloned().map(unpacked)).collect()
    }

    /// The names of all objects, in order.
    pub fn names(&self) -> Vec<ObjectRef> {
        self.read().objects.keys().cloned().collect()
    }

    /// All objects of one namespace (or all, where none is given) that a predicate accepts, ordered by name. They stay packed: each read of
    /// a text unpacks it.
    pub fn select(&self, namespace: Option<&str>, accepts: impl Fn(&Object) -> bool) -> Vec<Arc<Object>> {
        let in_scope = |object: &Object| namespace.is_none_or(|namespace| *object.name.namespace == *namespace);
        self.read().objects.values().filter(|object| in_scope(object) && accepts(object)).cloned().collect()
    }

    /// The same, if their texts have no more than `limit` bytes together. Ends as soon as they have more.
    pub fn select_within(
        &self,
        namespace: Option<&str>,
        accepts: impl Fn(&Object) -> bool,
        limit: usize,
    ) -> Option<Vec<Arc<Object>>> {
        let in_scope = |object: &Object| namespace.is_none_or(|namespace| *object.name.namespace == *namespace);
        let (mut found, mut left) = (Vec::new(), limit);
        for object in self.read().objects.values().filter(|object| in_scope(object) && accepts(object)) {
            left = left.checked_sub(object.text.len())?;
            found.push(object.clone());
        }
        Some(found)
    }

    /// How many objects it holds.
    pub fn len(&self) -> usize {
        self.read().objects.len()
    }

    /// Whether it holds no object.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The watch delivered this state. Returns the change; none if the state is not newer than the known one.
    pub(crate) fn on_watch_apply(&self, object: Object) -> Option<Change> {
        // Of what is listed first, nothing may have happened to most for long: all of it unpacked could be more than there is memory for.
        let packed = self.is_listed_first(&object.name).then(|| self.shared.pack(&object)).flatten();
        let object = packed.unwrap_or_else(|| self.shared.share(object));
        let mut inner = self.write();
        inner.advance(&object);
        inner.confirm(&object);
        let change = inner.insert_if_newer(object);
        self.tell_of_unpacked(&inner);
        change
    }

    /// The watch reported the deletion of this object.
    pub(crate) fn on_watch_delete(&self, object: &Object) -> Option<Change> {
        let mut inner = self.write();
        inner.advance(object);
        // A watch delivers events in order, so no older state of this object can follow.
        inner.deleted_uids.remove(&object.uid);
        // An object of the same name with another UID is a new one. This deletion is not about it.
        let same = inner.objects.get(&object.name).is_some_and(|known| known.uid == object.uid);
        if same { inner.remove(&object.name) } else { None }
    }

    /// A new listing begins. Nothing is removed before it is complete.
    pub(crate) fn on_list_start(&self) {
        let mut inner = self.write();
        inner.listed = Some(HashSet::new());
        // A list that starts now does not contain what was deleted before.
        inner.deleted_uids.clear();
    }

    /// The listing is complete: removes the objects that it did not contain.
    pub(crate) fn on_list_done(&self) -> Vec<Change> {
        let mut inner = self.write();
        inner.synced = true;
        let Some(listed) = inner.listed.take() else { return Vec::new() };
        let gone: Vec<_> = inner.objects.keys().filter(|name| !listed.contains(*name)).cloned().collect();
        gone.iter().filter_map(|name| inner.remove(name)).collect()
    }

    /// Forgets everything: the kind is no longer installed. The store is not synced until the next complete listing.
    pub(crate) fn clear(&self) {
        let mut inner = self.write();
        *inner = Inner { version: inner.version + 1, ..Inner::for_objects(inner.by_owner.is_some()) };
    }

    /// This process wrote the object and got this state as the response. Returns no change, because the writer knows it already.
    ///
    /// A response can arrive after the watch has reported the deletion of the object. It is dropped then: no later event would
    /// remove the object again.
    pub(crate) fn record_write(&self, object: Object) {
        let object = self.shared.share(object);
        let mut inner = self.write();
        let is_known = inner.objects.get(&object.name).is_some_and(|known| known.uid == object.uid);
        // A terminating object that is not known: the watch has reported its deletion before this response to the delete arrived.
        if !is_known && (object.deleting || inner.has_passed(&object)) {
            return;
        }
        inner.deleted_uids.remove(&object.uid);
        let name = object.name.clone();
        if inner.insert_if_newer(object).is_some() {
            inner.unconfirmed.insert(name, Instant::now());
        }
        self.tell_of_unpacked(&inner);
    }

    /// Whether the watch has failed to deliver a write of this process for longer than `limit`. Only a new listing can show what
    /// happened to it. While a listing is under way, no write is overdue.
    pub(crate) fn has_overdue_write(&self, limit: Duration) -> bool {
        let inner = self.read();
        inner.listed.is_none() && inner.unconfirmed.values().any(|since| since.elapsed() > limit)
    }

    /// The object is deleted, but the watch has not reported it yet. Until then the store holds it as terminating and without
    /// finalizers, and ignores older states of it.
    pub(crate) fn mark_terminated(&self, object: &Object) {
        let mut inner = self.write();
        if let Some(known) = inner.objects.get(&object.name).filter(|known| known.uid == object.uid) {
            let last = Object { deleting: true, finalizers: Vec::new(), ..(**known).clone() };
            inner.deleted_uids.insert(last.uid.clone());
            // Not by `insert_if_newer`, because this state has the resource version of the known one.
            inner.objects.insert(last.name.clone(), Arc::new(last));
            inner.version += 1;
        }
    }

    /// The object is deleted: this process deleted it or got a 404 for it. Returns no change, because the caller knows it already.
    pub(crate) fn record_delete(&self, object: &Object) {
        let mut inner = self.write();
        // Where the object is not known any more, the watch has reported its deletion already, and no older state can follow.
        if inner.objects.get(&object.name).is_some_and(|known| known.uid == object.uid) {
            inner.deleted_uids.insert(object.uid.clone());
            inner.remove(&object.name);
        }
    }

    /// Waits until there may be an object to pack. One task at a time may wait.
    pub(crate) async fn until_unpacked(&self) {
        self.news.notified().await;
    }

    /// The objects to pack: those that changed since the last call.
    pub(crate) fn take_unpacked(&self) -> BTreeSet<ObjectRef> {
        std::mem::take(&mut self.write().unpacked)
    }

    fn tell_of_unpacked(&self, inner: &Inner) {
        if !inner.unpacked.is_empty() {
            self.news.notify_one();
        }
    }

    /// Whether a listing is under way, and brings an object that nobody knows yet.
    fn is_listed_first(&self, name: &ObjectRef) -> bool {
        let inner = self.read();
        inner.listed.is_some() && !inner.objects.contains_key(name)
    }

    /// Packs an object, unless it changes meanwhile.
    pub(crate) fn pack(&self, name: &ObjectRef) {
        let Some(object) = self.held(name) else { return };
        let Some(packed) = self.shared.pack(&object) else { return };
        if let Some(known) = self.write().objects.get_mut(name)
            && Arc::ptr_eq(known, &object)
        {
            *known = packed;
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, Inner> {
        self.inner.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, Inner> {
        self.inner.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Holder for Store {
    fn held(&self, name: &ObjectRef) -> Option<Arc<Object>> {
        self.read().objects.get(name).cloned()
    }
}

/// An object for one who reads its text several times.
fn unpacked(object: Arc<Object>) -> Arc<Object> {
    match object.text.unpacked() {
        Some(text) => Arc::new(object.with_text(text)),
        None => object,
    }
}

impl Inner {
    fn for_objects(have_owners: bool) -> Self {
        Self { by_owner: have_owners.then(NamesByOwner::default), ..Self::default() }
    }

    /// Remembers the newest resource version that the watch has delivered.
    fn advance(&mut self, object: &Object) {
        if self.latest_version.as_ref().is_none_or(|latest_version| object.is_newer_than(latest_version)) {
            self.latest_version = Some(object.resource_version.clone());
        }
    }

    /// Marks an own write as delivered if this state is at least as new as the known one.
    fn confirm(&mut self, object: &Object) {
        if self.unconfirmed.is_empty() {
            return;
        }
        let known = self.objects.get(&object.name);
        if known.is_none_or(|known| !known.is_newer_than(&object.resource_version)) {
            self.unconfirmed.remove(&object.name);
        }
    }

    /// Whether the watch has delivered this resource version or a later one. Watch events arrive in the order of their resource
    /// versions; the items of a list do not, so nothing can be said during a listing.
    fn has_passed(&self, object: &Object) -> bool {
        self.listed.is_none()
            && self.latest_version.as_ref().is_some_and(|latest_version| !object.is_newer_than(latest_version))
    }

    /// Stores a state unless a newer one is known, even if that belongs to a new object (another UID) of the same name: a watch
    /// that lags behind still reports the previous object.
    fn insert_if_newer(&mut self, after: Arc<Object>) -> Option<Change> {
        if let Some(listed) = &mut self.listed {
            // Before the versions are compared: an old state in a list also shows that the object exists.
            listed.insert(after.name.clone());
        }
        let known = self.objects.get(&after.name);
        let is_old = known.is_some_and(|known| !after.is_newer_than(&known.resource_version));
        if is_old || self.deleted_uids.contains(&after.uid) {
            return None;
        }
        // Removed first, because the known state may have another owner in `by_owner`.
        let before = self.remove(&after.name).and_then(|change| change.before);
        if let (Some(names), Some(uid)) = (&mut self.by_owner, after.owner_uid()) {
            names.insert(uid, &after.name);
        }
        if !after.text.is_packed() {
            self.unpacked.insert(after.name.clone());
        }
        self.objects.insert(after.name.clone(), after.clone());
        self.version += 1;
        Some(Change { before, after: Some(after) })
    }

    fn remove(&mut self, name: &ObjectRef) -> Option<Change> {
        let before = self.objects.remove(name)?;
        self.version += 1;
        self.unconfirmed.remove(name);
        if let (Some(names), Some(uid)) = (&mut self.by_owner, before.owner_uid()) {
            names.remove(uid, name);
        }
        Some(Change { before: Some(before), after: None })
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use serde_json::json;

    use super::*;
    use crate::{object::ControllerRef, object_text::put_together};

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

    fn of_children() -> Arc<Store> {
        Store::sharing(Arc::default(), &WatchScope::Children)
    }

    #[test]
    fn own_writes_are_read_back_and_their_echo_is_no_change() {
        let store = of_children();
        store.on_watch_apply(object("a", "1", "5", None));
        store.record_write(object("a", "1", "7", Some("o")));
        assert_eq!(store.owned_by("o").len(), 1);
        assert!(store.on_watch_apply(object("a", "1", "6", None)).is_none(), "an older state is ignored");
        assert!(store.on_watch_apply(object("a", "1", "7", Some("o"))).is_none(), "the echo is no change");
        assert!(store.on_watch_apply(object("a", "1", "8", None)).is_some());
        assert!(store.owned_by("o").is_empty());
    }

    #[test]
    fn the_answer_to_a_write_does_not_bring_back_what_somebody_deleted_since() {
        for known_before in [true, false] {
            let store = Store::default();
            if known_before {
                store.on_watch_apply(object("a", "1", "5", Some("o")));
            }
            store.on_watch_apply(object("a", "1", "7", Some("o")));
            assert!(store.on_watch_delete(&object("a", "1", "8", Some("o"))).is_some());
            store.record_write(object("a", "1", "7", Some("o")));
            assert!(store.is_empty(), "the watch has seen it go");
            store.record_write(object("a", "2", "9", Some("o")));
            assert_eq!(store.len(), 1, "another one is news");
        }
    }

    #[test]
    fn the_answer_to_a_delete_does_not_bring_back_what_the_watch_saw_go() {
        let terminating = |version| Object { deleting: true, ..object("a", "1", version, Some("o")) };
        let store = of_children();
        store.on_watch_apply(object("a", "1", "5", Some("o")));
        store.record_write(terminating("6"));
        assert!(store.owned_by("o").iter().all(|known| known.deleting), "it takes its time");
        assert!(store.on_watch_delete(&terminating("7")).is_some());
        store.record_write(terminating("6"));
        assert!(store.owned_by("o").is_empty(), "the answer came late");
        store.on_watch_apply(object("a", "2", "9", Some("o")));
        store.record_write(terminating("6"));
        assert_eq!(store.owned_by("o").len(), 1, "and is not about its successor");
    }

    #[test]
    fn a_write_that_the_watch_never_brings_is_missed_until_a_listing_tells() {
        let store = Store::default();
        store.record_write(object("a", "1", "5", Some("o")));
        assert!(store.has_overdue_write(Duration::ZERO) && !store.has_overdue_write(Duration::from_secs(3_600)));
        store.on_watch_apply(object("a", "1", "4", Some("o")));
        assert!(store.has_overdue_write(Duration::ZERO), "an older state tells nothing");
        store.on_watch_apply(object("a", "1", "5", Some("o")));
        assert!(!store.has_overdue_write(Duration::ZERO), "its echo");
        store.record_write(object("a", "1", "5", Some("o")));
        assert!(!store.has_overdue_write(Duration::ZERO), "an answer that tells nothing new");
        store.record_write(object("a", "1", "7", Some("o")));
        store.on_watch_apply(object("a", "1", "8", Some("o")));
        assert!(!store.has_overdue_write(Duration::ZERO), "a later state");

        // The object is deleted before the listing, and the response to its write arrives during it: no event will follow.
        store.on_list_start();
        store.record_write(object("b", "2", "9", Some("o")));
        store.on_watch_apply(object("a", "1", "8", Some("o")));
        assert!(store.on_list_done().is_empty());
        assert!(store.has_overdue_write(Duration::ZERO));
        store.on_list_start();
        store.on_watch_apply(object("a", "1", "8", Some("o")));
        assert_eq!(store.on_list_done().len(), 1, "now it is known to be gone");
        assert!(!store.has_overdue_write(Duration::ZERO));
    }

    #[test]
    fn another_object_of_the_same_name_counts_if_it_came_later() {
        let store = Store::default();
        store.on_watch_apply(object("a", "1", "3", None));
        assert!(store.on_watch_apply(object("a", "2", "9", None)).is_some());
        assert!(store.on_watch_apply(object("a", "1", "5", None)).is_none(), "a late word of the first one");
        assert!(store.on_watch_delete(&object("a", "1", "6", None)).is_none(), "a late delete of the first one");
        assert_eq!(store.get(&ObjectRef::new("ns", "a")).map(|known| known.uid.clone()), Some("2".into()));
    }

    #[test]
    fn what_is_gone_stays_gone_whatever_comes_late() {
        let store = Store::default();
        let first = object("a", "1", "3", None);
        store.on_watch_apply(first.clone());
        store.record_delete(&first);
        assert!(store.on_watch_apply(object("a", "1", "4", None)).is_none(), "an event from before its deletion");
        assert!(store.on_watch_delete(&object("a", "1", "5", None)).is_none(), "nothing new");
        assert!(store.is_empty() && store.read().deleted_uids.is_empty());
        store.record_delete(&first);
        assert!(
            store.read().deleted_uids.is_empty(),
            "the watch was quicker than the answer, so nothing late can come"
        );
        store.record_write(object("a", "1", "6", None));
        assert_eq!(store.len(), 1, "what was written since is there");
    }

    #[test]
    fn a_state_that_two_stores_hold_is_in_memory_once() {
        let all = Store::sharing(Arc::default(), &WatchScope::All);
        let children = Store::sharing(all.shared().clone(), &WatchScope::Children);
        let held = |store: &Store| store.get(&ObjectRef::new("ns", "a"));
        let is_one = || held(&all).zip(held(&children)).map(|(all, children)| Arc::ptr_eq(&all, &children));
        all.on_watch_apply(object("a", "1", "1", None));
        children.on_watch_apply(object("a", "1", "1", None));
        assert_eq!(is_one(), Some(true), "both watches have brought it");
        children.record_write(object("a", "1", "2", None));
        assert_eq!(is_one(), Some(false), "one knows more than the other");
        all.on_watch_apply(object("a", "1", "2", None));
        assert_eq!(is_one(), Some(true));
        children.mark_terminated(&object("a", "1", "2", None));
        assert_eq!(
            held(&all).map(|known| known.deleting),
            Some(false),
            "what one store knows is not what the watch of the other says"
        );
    }

    /// An object of which there is enough to be packed.
    fn large(name: &str, version: &str) -> Object {
        let status = json!({"metadata": {"name": name}, "status": "running ".repeat(100)});
        Object { text: put_together(&status), ..object(name, name, version, Some("o")) }
    }

    fn is_packed(store: &Store, name: &str) -> Option<bool> {
        store.held(&ObjectRef::new("ns", name)).map(|held| held.text.is_packed())
    }

    #[test]
    fn what_rests_is_packed_and_read_as_it_was() {
        let store = of_children();
        let name = ObjectRef::new("ns", "a");
        store.on_watch_apply(large("a", "1"));
        assert_eq!(is_packed(&store, "a"), Some(false));
        let version = store.version();
        store.take_unpacked().iter().for_each(|name| store.pack(name));
        assert_eq!((is_packed(&store, "a"), store.version()), (Some(true), version));
        for read in [store.get(&name), store.owned_by("o").pop()] {
            assert_eq!(read.as_ref().map(|read| (&**read, read.text.is_packed())), Some((&large("a", "1"), false)));
        }
        assert_eq!(store.select(None, |object| object.text.contains("running")).len(), 1);
        assert!(store.on_watch_apply(large("a", "1")).is_none(), "the same state again is no change");
        assert!(store.take_unpacked().is_empty(), "and nothing to pack");

        let change = store.on_watch_apply(large("a", "2"));
        assert_eq!(change.and_then(|change| change.before).as_deref(), Some(&large("a", "1")));
        assert_eq!(store.take_unpacked(), BTreeSet::from([name]));
    }

    #[test]
    fn what_is_listed_first_is_packed_at_once() {
        let store = Store::default();
        store.on_list_start();
        store.on_watch_apply(large("a", "1"));
        store.on_list_done();
        store.on_watch_apply(large("b", "2"));
        assert_eq!((is_packed(&store, "a"), is_packed(&store, "b")), (Some(true), Some(false)));
        assert_eq!(store.take_unpacked(), BTreeSet::from([ObjectRef::new("ns", "b")]));
    }

    #[test]
    fn what_changes_or_goes_while_it_is_packed_stays_as_it_is() {
        let store = Store::default();
        for name in ["changed", "gone"] {
            store.on_watch_apply(large(name, "1"));
        }
        let resting = store.take_unpacked();
        store.on_watch_apply(large("changed", "2"));
        store.on_watch_delete(&large("gone", "3"));
        resting.iter().for_each(|name| store.pack(name));
        assert_eq!((is_packed(&store, "gone"), store.len()), (None, 1));
        let changed = store.get(&ObjectRef::new("ns", "changed"));
        assert_eq!(changed.as_deref(), Some(&large("changed", "2")));
    }

    #[test]
    fn a_packed_state_that_two_stores_hold_is_in_memory_once() {
        let all = Store::sharing(Arc::default(), &WatchScope::All);
        let children = Store::sharing(all.shared().clone(), &WatchScope::Children);
        for store in [&all, &children] {
            store.on_watch_apply(large("a", "1"));
            store.take_unpacked().iter().for_each(|name| store.pack(name));
        }
        let held = |store: &Store| store.held(&ObjectRef::new("ns", "a"));
        assert_eq!(is_packed(&all, "a"), Some(true));
        assert_eq!(held(&all).zip(held(&children)).map(|(all, children)| Arc::ptr_eq(&all, &children)), Some(true));
    }

    #[tokio::test]
    async fn an_object_to_pack_is_waited_for() {
        let store = Store::default();
        assert!(store.until_unpacked().now_or_never().is_none());
        store.on_watch_apply(large("a", "1"));
        store.until_unpacked().await;
        assert!(store.until_unpacked().now_or_never().is_none());
    }

    #[test]
    fn a_selection_ends_at_its_limit() {
        let store = Store::default();
        for name in ["a", "b", "c"] {
            let named = object(name, name, "1", None);
            store.on_watch_apply(Object { text: "x".repeat(10).into(), ..named });
        }
        let found = |limit| store.select_within(None, |_| true, limit).map(|found| found.len());
        assert_eq!([found(30), found(29), found(0)], [Some(3), None, None]);
        let none = store.select_within(None, |_| false, 0).map(|found| found.len());
        assert_eq!(none, Some(0), "what is not selected does not count");
    }

    #[test]
    fn what_has_ended_is_there_until_its_watch_says_so() {
        let store = Store::default();
        store.on_watch_apply(object("a", "1", "3", None));
        store.mark_terminated(&object("a", "1", "3", None));
        assert!(store.on_watch_apply(object("a", "1", "4", None)).is_none(), "an event from before its deletion");
        assert!(store.get(&ObjectRef::new("ns", "a")).is_some_and(|last| last.deleting));
        assert!(store.on_watch_delete(&object("a", "1", "5", None)).is_some());
        assert!(store.is_empty() && store.read().deleted_uids.is_empty());
    }

    #[test]
    fn a_new_listing_removes_what_it_does_not_bring() {
        let store = Store::default();
        assert!(!store.is_synced());
        store.on_list_start();
        store.on_watch_apply(object("a", "1", "1", None));
        store.on_watch_apply(object("b", "2", "2", None));
        assert!(store.on_list_done().is_empty());
        assert!(store.is_synced());
        store.on_list_start();
        store.on_watch_apply(object("b", "2", "2", None));
        assert_eq!(store.len(), 2, "nothing goes before the listing is complete");
        let gone = store.on_list_done();
        assert_eq!(gone.len(), 1);
        assert_eq!(store.names(), [ObjectRef::new("ns", "b")]);
    }

    #[test]
    fn what_is_written_during_a_listing_is_not_gone_for_it() {
        let store = Store::default();
        store.on_list_start();
        store.record_write(object("a", "1", "5", None));
        assert!(store.on_list_done().is_empty());
        assert_eq!(store.len(), 1);
    }
}
