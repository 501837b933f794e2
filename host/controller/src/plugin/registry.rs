//! The active plugins by name: one version each, or several that divide the objects among them. Whoever depends on a version waits for
//! [`ActivePlugin::until_superseded`]; the registry stops nothing else.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use pilothouse_engine::contract::KindRef;

use super::{ActivePlugin, settings::Presence};
use crate::object::{Object, ObjectRef};

/// The active plugins.
#[derive(Default)]
pub struct Registry(RwLock<BTreeMap<Arc<str>, Arc<Versions>>>);

/// The active versions of a plugin. All of them reconcile the same kind.
pub struct Versions {
    stable: Arc<ActivePlugin>,
    others: Vec<Arc<ActivePlugin>>,
}

impl Versions {
    /// The version that answers whatever no other one does.
    pub fn stable(&self) -> &Arc<ActivePlugin> {
        &self.stable
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<ActivePlugin>> {
        std::iter::once(&self.stable).chain(&self.others)
    }

    /// The version with this digest.
    pub fn with_digest(&self, digest: &str) -> Option<&Arc<ActivePlugin>> {
        self.iter().find(|version| version.reconciler.digest() == digest)
    }

    /// The version that answers an object; none if that is one that is not here. An object that is gone is as good for any.
    pub fn answering(&self, object: Option<&Object>) -> Option<&Arc<ActivePlugin>> {
        match object {
            Some(object) => self.iter().find(|version| version.answers(object)),
            None => Some(&self.stable),
        }
    }

    /// Whether any of them has children of this kind, or had.
    pub fn has_children(&self, kind: &KindRef) -> bool {
        self.iter().any(|version| version.child_watch(kind).is_some())
    }

    /// An object has been reconciled, or is gone.
    pub fn mark_seen(&self, object: &ObjectRef) {
        self.iter().for_each(|version| version.new_version.mark_seen(object));
    }
}

impl Registry {
    /// The active version of the plugin with this name, without those that answer some of its objects.
    pub fn get(&self, name: &str) -> Option<Arc<ActivePlugin>> {
        self.versions(name).map(|versions| versions.stable.clone())
    }

    /// All active versions of the plugin with this name.
    pub fn versions(&self, name: &str) -> Option<Arc<Versions>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// The versions of all active plugins, in the order of their names, with those that are gone.
    pub fn all(&self) -> Vec<Arc<Versions>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The active versions of plugins that are there.
    pub fn at_work(&self) -> Vec<Arc<ActivePlugin>> {
        let versions = self.all();
        let all = versions.iter().flat_map(|versions| versions.iter());
        all.filter(|plugin| plugin.presence == Presence::AtWork).cloned().collect()
    }

    /// Activates versions in the place of those before. The first one answers whatever no other one does.
    pub fn start(&self, stable: ActivePlugin, others: Vec<ActivePlugin>) -> Arc<Versions> {
        // Here and not when the plugin was prepared: on a standby host, the first minute would be over before the version begins to
        // work.
        let begun = |mut plugin: ActivePlugin| {
            plugin.begin_work();
            Arc::new(plugin)
        };
        let versions = Versions { stable: begun(stable), others: others.into_iter().map(begun).collect() };
        let (name, versions) = (versions.stable.name.clone(), Arc::new(versions));
        let before = self.0.write().unwrap_or_else(PoisonError::into_inner).insert(name, versions.clone());
        // After the new version is in its place: a call that this ends is repeated at once and must find the new version.
        before.iter().flat_map(|before| before.iter()).for_each(|before| before.supersede());
        versions
    }

    /// Removes a plugin.
    pub fn stop(&self, name: &str) {
        let before = self.0.write().unwrap_or_else(PoisonError::into_inner).remove(name);
        before.iter().flat_map(|before| before.iter()).for_each(|before| before.supersede());
    }
}
