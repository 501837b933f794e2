//! The active plugins by name, one version each. Whoever depends on a version waits for [`ActivePlugin::until_superseded`]; the
//! registry stops nothing else.

use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock},
};

use super::{ActivePlugin, settings::Presence};

/// The active plugins.
#[derive(Default)]
pub struct Registry(RwLock<BTreeMap<Arc<str>, Arc<ActivePlugin>>>);

impl Registry {
    /// The active version of the plugin with this name.
    pub fn get(&self, name: &str) -> Option<Arc<ActivePlugin>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// All active plugins, in the order of their names, with those that are gone.
    pub fn all(&self) -> Vec<Arc<ActivePlugin>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// The active plugins that are there.
    pub fn at_work(&self) -> Vec<Arc<ActivePlugin>> {
        self.all().into_iter().filter(|plugin| plugin.presence == Presence::AtWork).collect()
    }

    /// Activates a version in place of the one before.
    pub fn start(&self, mut plugin: ActivePlugin) -> Arc<ActivePlugin> {
        // Here and not when the plugin was prepared: on a standby host, the first minute would be over before the version begins to
        // work.
        plugin.begin_work();
        let plugin = Arc::new(plugin);
        let before = self.0.write().unwrap_or_else(PoisonError::into_inner).insert(plugin.name.clone(), plugin.clone());
        if let Some(before) = before {
            // After the new version is in its place: a call that this ends is repeated at once and must find the new version.
            before.supersede();
        }
        plugin
    }

    /// Removes a plugin.
    pub fn stop(&self, name: &str) {
        if let Some(plugin) = self.0.write().unwrap_or_else(PoisonError::into_inner).remove(name) {
            plugin.supersede();
        }
    }
}
