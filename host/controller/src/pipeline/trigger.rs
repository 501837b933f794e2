//! Stage 1: which keys a change wakes. Everything that happens becomes a key in the one queue; what happened is
//! forgotten, for a reconcile looks at the state alone.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{Arc, PoisonError, RwLock},
};

use pilothouse_engine::contract::KindRef;

use crate::{
    cache::{Change, Name, Object, Scope, Sink},
    lookups::LookupIndex,
    pipeline::{check::describe, pace::Pace},
    plugin::ActivePlugin,
    queue::{Key, Priority, Queue},
};

/// Turns changes into keys.
pub struct Trigger {
    queue: Arc<Queue>,
    lookups: Arc<LookupIndex>,
    pace: Arc<Pace>,
    /// The plugins at work, by name.
    plugins: RwLock<HashMap<Arc<str>, Arc<ActivePlugin>>>,
}

impl Trigger {
    /// No plugin yet.
    pub fn new(queue: Arc<Queue>, lookups: Arc<LookupIndex>, pace: Arc<Pace>) -> Self {
        Self { queue, lookups, pace, plugins: RwLock::default() }
    }

    /// The plugin of that name, as it is now.
    pub fn plugin(&self, name: &str) -> Option<Arc<ActivePlugin>> {
        self.plugins.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// All plugins at work.
    pub fn plugins(&self) -> Vec<Arc<ActivePlugin>> {
        self.plugins.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Puts a plugin, or a new version of it, to work: all its objects are reconciled.
    pub fn start(&self, mut plugin: ActivePlugin) {
        plugin.begin_probation();
        let plugin = Arc::new(plugin);
        let mut plugins = self.plugins.write().unwrap_or_else(PoisonError::into_inner);
        let before = plugins.insert(plugin.name.clone(), plugin.clone());
        drop(plugins);
        if let Some(before) = before {
            before.supersede();
        }
        self.queue.add_all(all_keys(&plugin));
    }

    /// Takes a plugin out of work. Its objects and children stay as they are.
    pub fn stop(&self, name: &str) {
        if let Some(plugin) = self.plugins.write().unwrap_or_else(PoisonError::into_inner).remove(name) {
            plugin.supersede();
        }
        self.queue.forget_plugin(name);
    }

    /// The objects whose turn it is to be looked at without a reason: those in one of so many equal parts.
    pub fn resync(&self, part: u64, parts: u64) {
        for plugin in self.plugins() {
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
        self.pace.woken(&key, || describe(kind, &source.name.name));
        self.queue.add(key, Priority::Live);
    }

    /// Asks for everything that a synced watch is good for, and for all objects of plugins that have children of the
    /// kind: while it was not synced, nothing could be decided.
    fn kind_arrived(&self, kind: &KindRef, scope: Scope) {
        for plugin in self.plugins() {
            let uses = match scope {
                Scope::All => plugin.objects.kind() == kind,
                Scope::Children => plugin.child_watch(kind).is_some(),
            };
            if uses {
                self.queue.add_all(all_keys(&plugin));
            }
        }
        if scope == Scope::All {
            self.queue.add_all(self.lookups.users_of(kind));
        }
    }
}

impl Sink for Trigger {
    fn changed(&self, kind: &KindRef, scope: Scope, change: &Change) {
        for plugin in self.plugins() {
            match scope {
                Scope::All if plugin.objects.kind() == kind => self.object_changed(&plugin, change),
                Scope::Children if plugin.child_watch(kind).is_some() => {
                    let parents = change.states().filter_map(|child| Some((parent(&plugin, child)?, child)));
                    parents.for_each(|(key, child)| self.wake(key, kind, child));
                }
                _ => {}
            }
        }
        change.states().for_each(|object| self.echoed(kind, scope, object));
    }

    fn echoed(&self, kind: &KindRef, scope: Scope, object: &Object) {
        if scope == Scope::All {
            let woken = self.lookups.affected(kind, object);
            woken.into_iter().for_each(|key| self.wake(key, kind, object));
        }
    }

    fn synced(&self, kind: &KindRef, scope: Scope) {
        self.kind_arrived(kind, scope);
    }
}

fn key(plugin: &ActivePlugin, object: &Name) -> Key {
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
    ours.then(|| key(plugin, &Name::new(namespace, &owner.name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resync_is_spread_over_its_parts() {
        let mut parts = [0; 100];
        for number in 0..10_000 {
            let key = Key { plugin: "p".into(), object: Name::new("ns", &format!("object-{number}")) };
            let part = part_of(&key, 100);
            assert_eq!(part, part_of(&key, 100), "a key has one turn in a period");
            parts[part as usize] += 1;
        }
        assert!(parts.iter().all(|count| (50..200).contains(count)), "{parts:?}");
    }
}
