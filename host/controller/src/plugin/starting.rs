//! The plugins that are about to become active: their caches fill, or they stand by until this host may write. Starts nothing by
//! itself.

use std::{collections::HashMap, sync::Arc};

use tokio::task::AbortHandle;

use super::{ActivePlugin, settings::Presence};
use crate::cache::Informer;

/// The starting plugins, by name.
#[derive(Default)]
pub struct StartingPlugins(HashMap<String, Start>);

struct Start {
    task: AbortHandle,
    presence: Presence,
    /// The informers that it cannot work without, once their caches are synced. A standby host is ready then.
    standby: Option<Vec<Arc<Informer>>>,
}

impl StartingPlugins {
    /// A version starts. It replaces a version of the same plugin that is still starting.
    pub fn begin(&mut self, plugin: String, presence: Presence, task: AbortHandle) {
        if let Some(superseded) = self.0.insert(plugin, Start { task, presence, standby: None }) {
            superseded.task.abort();
        }
    }

    /// A version has become active.
    pub fn finish(&mut self, plugin: &str) {
        self.0.remove(plugin);
    }

    /// Stops the start of a version.
    pub fn cancel(&mut self, plugin: &str) {
        if let Some(start) = self.0.remove(plugin) {
            start.task.abort();
        }
    }

    /// The caches of the versions of a plugin are synced. They stand by until this host may write.
    pub fn set_standby<'p>(&mut self, plugin: &str, versions: impl Iterator<Item = &'p ActivePlugin>) {
        if let Some(start) = self.0.get_mut(plugin) {
            start.standby = Some(versions.flat_map(|version| version.required()).cloned().collect());
        }
    }

    /// Whether a plugin of this name is starting.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// The plugins whose caches are not synced yet.
    pub fn waiting_for_caches(&self) -> Vec<String> {
        let waiting = self.at_work().filter(|(_, start)| start.standby.is_none());
        waiting.map(|(name, _)| name.clone()).collect()
    }

    /// All starting plugins. Nobody waits for what takes the place of one that is gone.
    pub fn names(&self) -> Vec<String> {
        self.at_work().map(|(name, _)| name.clone()).collect()
    }

    fn at_work(&self) -> impl Iterator<Item = (&String, &Start)> {
        self.0.iter().filter(|(_, start)| start.presence == Presence::AtWork)
    }

    /// Whether a plugin on standby cannot work without this informer.
    pub fn requires(&self, informer: &Arc<Informer>) -> bool {
        self.0.values().flat_map(|start| start.standby.iter().flatten()).any(|required| Arc::ptr_eq(required, informer))
    }
}
