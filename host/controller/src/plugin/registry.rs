//! The plugins at work, by name: one version each. Starts and stops nothing else; who depends on a plugin is told by the
//! plugin itself ([`ActivePlugin::until_superseded`]).

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use super::ActivePlugin;

/// The plugins at work.
#[derive(Default)]
pub struct Registry(RwLock<HashMap<Arc<str>, Arc<ActivePlugin>>>);

impl Registry {
    /// The plugin of that name, as it is now.
    pub fn get(&self, name: &str) -> Option<Arc<ActivePlugin>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// All plugins at work.
    pub fn all(&self) -> Vec<Arc<ActivePlugin>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Puts a version to work, in the place of the one before it.
    pub fn start(&self, mut plugin: ActivePlugin) -> Arc<ActivePlugin> {
        plugin.begin_work();
        let plugin = Arc::new(plugin);
        let before = self.0.write().unwrap_or_else(PoisonError::into_inner).insert(plugin.name.clone(), plugin.clone());
        if let Some(before) = before {
            before.supersede();
        }
        plugin
    }

    /// Takes a plugin out of work.
    pub fn stop(&self, name: &str) {
        if let Some(plugin) = self.0.write().unwrap_or_else(PoisonError::into_inner).remove(name) {
            plugin.supersede();
        }
    }
}
