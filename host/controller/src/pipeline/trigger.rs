//! Stage 1: maps changes in the caches to keys in the queue. The change itself is dropped, because a reconcile depends on the
//! current state only (level-triggered).

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use pilothouse_engine::contract::KindRef;

use super::state::hot_loop::{EventOrigin, HotLoops};
use crate::{
    cache::{Change, EventHandler, WatchScope},
    identity::ServiceAccount,
    lookups::LookupIndex,
    object::{Object, ObjectRef, describe},
    plugin::{ActivePlugin, Registry, Versions},
    queue::{Key, Priority, Queue},
};

/// Adds the keys of all objects that a change affects.
pub struct Trigger {
    queue: Arc<Queue>,
    plugins: Arc<Registry>,
    lookups: Arc<LookupIndex>,
    hot_loops: Arc<HotLoops>,
}

impl Trigger {
    /// A trigger that adds to `queue` the objects of the active plugins, and the objects that looked a changed object up.
    pub fn new(queue: Arc<Queue>, plugins: Arc<Registry>, lookups: Arc<LookupIndex>, hot_loops: Arc<HotLoops>) -> Self {
        Self { queue, plugins, lookups, hot_loops }
    }

    /// Adds all objects of a plugin whose new version became active.
    pub fn plugin_started(&self, versions: &Versions) {
        self.queue.add_all(all_keys(versions.stable()));
    }

    /// Removes the waiting keys of a plugin that was removed.
    pub fn plugin_stopped(&self, name: &str) {
        self.queue.forget_plugin(name);
    }

    /// Adds the objects of one of `parts` equal parts, without a change. Calling it for each part in turn spreads the resync of all
    /// objects over the period.
    pub fn resync(&self, part: u64, parts: u64) {
        for versions in self.plugins.all() {
            self.queue.add_all(all_keys(versions.stable()).into_iter().filter(|key| part_of(key, parts) == part));
        }
    }

    /// Adds an object that was created, changed or deleted. A new generation or a deletion is a user's request and ends a pause of
    /// the key; a change of status or metadata does not.
    fn object_changed(&self, plugin: &ActivePlugin, change: &Change) {
        let Some(object) = change.states().last() else { return };
        let intent = |object: &Arc<Object>| (object.uid.clone(), object.generation, object.deleting);
        let key = key(plugin, &object.name);
        if change.before.as_ref().map(intent) == change.after.as_ref().map(intent) {
            self.enqueue(key, EventOrigin::Own, plugin.objects.kind(), object);
        } else {
            self.queue.add_urgent(key);
        }
    }

    /// Adds all objects for which a plugin works with this account.
    pub fn permissions_changed(&self, account: &ServiceAccount) {
        for versions in self.plugins.all() {
            let plugin = versions.stable();
            let Some(own) = &plugin.account else { continue };
            let is_affected = |key: &Key| own.for_namespace(&key.object.namespace) == *account;
            self.queue.add_all(all_keys(plugin).into_iter().filter(is_affected));
        }
    }

    /// Adds the objects of a namespace for the plugins that select namespaces by their labels, and those that may have children in it.
    fn namespace_changed(&self, namespace: &str) {
        for versions in self.plugins.all().iter().filter(|versions| versions.stable().namespaces.is_some()) {
            let is_affected = |key: &Key| key.object.namespace.is_empty() || *key.object.namespace == *namespace;
            self.queue.add_all(all_keys(versions.stable()).into_iter().filter(is_affected));
        }
    }

    /// Adds an object that this host has written, for all plugins where several work on it: what one of them writes may be read by others.
    fn shared_object_written(&self, kind: &KindRef, object: &Object) {
        let all = self.plugins.all();
        let sharing: Vec<_> = all.iter().filter(|versions| versions.stable().objects.kind() == kind).collect();
        if sharing.len() > 1 {
            sharing.iter().for_each(|versions| self.queue.add(key(versions.stable(), &object.name), Priority::Live));
        }
    }

    fn enqueue(&self, key: Key, origin: EventOrigin, kind: &KindRef, source: &Object) {
        self.hot_loops.count_event(&key, origin, || describe(kind, &source.name));
        self.queue.add(key, Priority::Live);
    }

    /// Whether the lookups of a key's plugin are answered from this cache: two plugins may be confined to different parts of a kind.
    fn looks_up(&self, key: &Key, kind: &KindRef, scope: &WatchScope) -> bool {
        let versions = self.plugins.versions(&key.plugin);
        let mut lookups =
            versions.iter().flat_map(|versions| versions.iter()).filter_map(|plugin| plugin.lookups.get(kind));
        lookups.any(|lookup| WatchScope::of_lookup(&lookup.declared) == *scope)
    }

    /// Adds all objects whose reconcile needs this informer. Until it synced, their reconciles ended without a decision.
    fn kind_synced(&self, kind: &KindRef, scope: &WatchScope) {
        for versions in self.plugins.all() {
            let uses = match scope {
                WatchScope::All => versions.stable().objects.kind() == kind,
                WatchScope::Children => versions.has_children(kind),
                WatchScope::LookedUp { .. } => false,
            };
            if uses {
                self.queue.add_all(all_keys(versions.stable()));
            }
        }
        let users = self.lookups.users_of(kind);
        self.queue.add_all(users.into_iter().filter(|user| self.looks_up(user, kind, scope)));
    }
}

impl EventHandler for Trigger {
    fn changed(&self, kind: &KindRef, scope: &WatchScope, change: &Change) {
        for versions in self.plugins.all() {
            let plugin = versions.stable();
            match scope {
                WatchScope::All if plugin.objects.kind() == kind => self.object_changed(plugin, change),
                WatchScope::Children if versions.has_children(kind) => {
                    // Both states, because a child can get another owner. The previous one has to notice the loss.
                    let own = change.states().filter(|child| plugin.has_child(child));
                    let parents = own.filter_map(|child| Some((parent(plugin, child)?, child)));
                    parents.for_each(|(key, child)| self.enqueue(key, EventOrigin::Own, kind, child));
                }
                _ => {}
            }
        }
        if *scope == WatchScope::All && *kind == KindRef::new("v1", "Namespace") {
            change.states().last().into_iter().for_each(|namespace| self.namespace_changed(&namespace.name.name));
        }
        // Both states: when an object loses a label, only its previous state matches the selectors of those that looked it up.
        change.states().for_each(|object| self.echoed(kind, scope, object));
    }

    fn echoed(&self, kind: &KindRef, scope: &WatchScope, object: &Object) {
        if *scope == WatchScope::Children {
            return;
        }
        if *scope == WatchScope::All {
            self.shared_object_written(kind, object);
        }
        let affected = self.lookups.affected(kind, object).into_iter();
        let affected = affected.filter(|key| self.looks_up(key, kind, scope));
        affected.for_each(|key| self.enqueue(key, EventOrigin::Lookup, kind, object));
    }

    fn synced(&self, kind: &KindRef, scope: &WatchScope) {
        self.kind_synced(kind, scope);
    }
}

fn key(plugin: &ActivePlugin, object: &ObjectRef) -> Key {
    Key { plugin: plugin.name.clone(), object: object.clone() }
}

/// The part of a key, always the same for the same key.
fn part_of(key: &Key, parts: u64) -> u64 {
    // `DefaultHasher::new` has fixed keys, unlike the random ones of a `HashMap`: the part of a key must not change between two
    // resyncs.
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish() % parts
}

/// The keys of all objects that a plugin reconciles.
fn all_keys(plugin: &ActivePlugin) -> Vec<Key> {
    plugin.objects.store().names().iter().map(|name| key(plugin, name)).collect()
}

/// The key of a child's owner, if the plugin reconciles its kind. The version of the owner reference does not matter, because an
/// object is the same in all versions of its kind. A child without a controller, such as one that is kept, has its owner's UID in
/// a label.
fn parent(plugin: &ActivePlugin, child: &Object) -> Option<Key> {
    let Some(owner) = &child.controller else {
        let uid = child.owner_uid()?;
        let objects = plugin.objects.store().select(None, |object| *object.uid == *uid);
        return objects.first().map(|object| key(plugin, &object.name));
    };
    let reconciles = plugin.objects.kind();
    let group = owner.api_version.split_once('/').map_or("", |(group, _)| group);
    let ours = *owner.kind == *reconciles.kind && group == reconciles.group();
    let namespaced = plugin.objects.installed().is_none_or(|installed| installed.namespaced);
    // An owner reference has no namespace: the owner is in the namespace of the child, or cluster-scoped.
    let namespace = if namespaced { &*child.name.namespace } else { "" };
    ours.then(|| key(plugin, &ObjectRef::new(namespace, &owner.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resync_is_spread_over_its_parts() {
        let mut parts = [0; 100];
        for number in 0..10_000 {
            let key = Key { plugin: "p".into(), object: ObjectRef::new("ns", &format!("object-{number}")) };
            let part = part_of(&key, 100);
            assert_eq!(part, part_of(&key, 100), "a key is always in the same part");
            parts[part as usize] += 1;
        }
        assert!(parts.iter().all(|count| (50..200).contains(count)), "{parts:?}");
    }
}
