//! Stage 1: which keys a change wakes. Everything that happens becomes a key in the one queue; what happened is
//! forgotten, for a reconcile looks at the state alone.

use std::{
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use pilothouse_engine::contract::KindRef;

use super::state::hot_loop::HotLoops;
use crate::{
    cache::{Change, EventHandler, WatchScope},
    lookups::LookupIndex,
    object::{Object, ObjectRef, describe},
    plugin::{ActivePlugin, Registry},
    queue::{Key, Priority, Queue},
};

/// Turns changes into keys.
pub struct Trigger {
    queue: Arc<Queue>,
    plugins: Arc<Registry>,
    lookups: Arc<LookupIndex>,
    hot_loops: Arc<HotLoops>,
}

impl Trigger {
    /// Puts keys into a queue: those of objects of the plugins at work, and of those who looked something up.
    pub fn new(queue: Arc<Queue>, plugins: Arc<Registry>, lookups: Arc<LookupIndex>, hot_loops: Arc<HotLoops>) -> Self {
        Self { queue, plugins, lookups, hot_loops }
    }

    /// Asks for all objects of a plugin, of which a version has come to work.
    pub fn plugin_started(&self, plugin: &ActivePlugin) {
        self.queue.add_all(all_keys(plugin));
    }

    /// Forgets what waits of a plugin that has stopped.
    pub fn plugin_stopped(&self, name: &str) {
        self.queue.forget_plugin(name);
    }

    /// The objects whose turn it is to be looked at without a reason: those in one of so many equal parts.
    pub fn resync(&self, part: u64, parts: u64) {
        for plugin in self.plugins.all() {
            self.queue.add_all(all_keys(&plugin).into_iter().filter(|key| part_of(key, parts) == part));
        }
    }

    /// An object that a plugin reconciles came, changed or went. A change of what its author wrote waits for nothing.
    fn object_changed(&self, plugin: &ActivePlugin, change: &Change) {
        let Some(object) = change.states().last() else { return };
        let intent = |object: &Arc<Object>| (object.uid.clone(), object.generation, object.deleting);
        let key = key(plugin, &object.name);
        if change.before.as_ref().map(intent) == change.after.as_ref().map(intent) {
            self.wake(key, plugin.objects.kind(), object);
        } else {
            self.queue.add_urgent(key);
        }
    }

    fn wake(&self, key: Key, kind: &KindRef, source: &Object) {
        self.hot_loops.woken(&key, || describe(kind, &source.name));
        self.queue.add(key, Priority::Live);
    }

    /// Asks for everything that a synced watch is good for, and for all objects of plugins that have children of the
    /// kind: while it was not synced, nothing could be decided.
    fn kind_arrived(&self, kind: &KindRef, scope: WatchScope) {
        for plugin in self.plugins.all() {
            let uses = match scope {
                WatchScope::All => plugin.objects.kind() == kind,
                WatchScope::Children => plugin.child_watch(kind).is_some(),
            };
            if uses {
                self.queue.add_all(all_keys(&plugin));
            }
        }
        if scope == WatchScope::All {
            self.queue.add_all(self.lookups.users_of(kind));
        }
    }
}

impl EventHandler for Trigger {
    fn changed(&self, kind: &KindRef, scope: WatchScope, change: &Change) {
        for plugin in self.plugins.all() {
            match scope {
                WatchScope::All if plugin.objects.kind() == kind => self.object_changed(&plugin, change),
                WatchScope::Children if plugin.child_watch(kind).is_some() => {
                    let parents = change.states().filter_map(|child| Some((parent(&plugin, child)?, child)));
                    parents.for_each(|(key, child)| self.wake(key, kind, child));
                }
                _ => {}
            }
        }
        change.states().for_each(|object| self.echoed(kind, scope, object));
    }

    fn echoed(&self, kind: &KindRef, scope: WatchScope, object: &Object) {
        if scope == WatchScope::All {
            let woken = self.lookups.affected(kind, object);
            woken.into_iter().for_each(|key| self.wake(key, kind, object));
        }
    }

    fn synced(&self, kind: &KindRef, scope: WatchScope) {
        self.kind_arrived(kind, scope);
    }
}

fn key(plugin: &ActivePlugin, object: &ObjectRef) -> Key {
    Key { plugin: plugin.name.clone(), object: object.clone() }
}

/// In which of so many parts a key is, always the same.
fn part_of(key: &Key, parts: u64) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish() % parts
}

/// The keys of all objects that a plugin reconciles.
fn all_keys(plugin: &ActivePlugin) -> Vec<Key> {
    plugin.objects.store().names().iter().map(|name| key(plugin, name)).collect()
}

/// The object that a child belongs to, if it is of the plugin's kind. Versions of one group are one kind. A child
/// without a controller belongs to the object whose UID its label holds.
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
            assert_eq!(part, part_of(&key, 100), "a key has one turn in a period");
            parts[part as usize] += 1;
        }
        assert!(parts.iter().all(|count| (50..200).contains(count)), "{parts:?}");
    }
}
