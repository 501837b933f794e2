//! The active plugins by name, one version each. Whoever depends on a version waits for [`ActivePlugin::until_superseded`]; the
//! registry stops nothing else.

use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock},
};

use super::ActivePlugin;

/// The active plugins.
#[derive(Default)]
pub struct Registry(RwLock<HashMap<Arc<str>, Arc<ActivePlugin>>>);

impl Registry {
    /// The active version of the plugin with this name.
    pub fn get(&self, name: &str) -> Option<Arc<ActivePlugin>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// All active plugins.
    pub fn all(&self) -> Vec<Arc<ActivePlugin>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Activates a version in place of the one before.
    pub fn start(&self, mut plugin: ActivePlugin) -> Arc<ActivePlugin> {
        plugin.begin_work();
        let plugin = Arc::new(plugin);
        let before = self.0.write().unwrap_or_else(PoisonError::into_inner).insert(plugin.name.clone(), plugin.clone());
        if let Some(before) = before {
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
