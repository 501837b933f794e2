//! Plugins that are getting ready to work: those that load, and those that are warm and stand by until this host may write.
//! Starts nothing by itself.

use std::{collections::HashMap, sync::Arc};

use tokio::task::AbortHandle;

use super::ActivePlugin;
use crate::cache::Informer;

/// The plugins that are getting ready, by name.
#[derive(Default)]
pub struct StartingPlugins(HashMap<String, Start>);

struct Start {
    task: AbortHandle,
    /// The watches it cannot work without, once it knows all that it needs to work.
    warm: Option<Vec<Arc<Informer>>>,
}

impl StartingPlugins {
    /// A version gets ready, in the place of one that did so before.
    pub fn begin(&mut self, plugin: String, task: AbortHandle) {
        if let Some(superseded) = self.0.insert(plugin, Start { task, warm: None }) {
            superseded.task.abort();
        }
    }

    /// A version is at work.
    pub fn end(&mut self, plugin: &str) {
        self.0.remove(plugin);
    }

    /// A version shall not get ready any more.
    pub fn cancel(&mut self, plugin: &str) {
        if let Some(start) = self.0.remove(plugin) {
            start.task.abort();
        }
    }

    /// A version has its caches filled and could work.
    pub fn warm(&mut self, plugin: &ActivePlugin) {
        if let Some(start) = self.0.get_mut(&*plugin.name) {
            start.warm = Some(plugin.required().cloned().collect());
        }
    }

    /// The plugins that are not warm yet.
    pub fn cold(&self) -> Vec<String> {
        let cold = self.0.iter().filter(|(_, start)| start.warm.is_none());
        cold.map(|(name, _)| name.clone()).collect()
    }

    /// All of them.
    pub fn names(&self) -> Vec<String> {
        self.0.keys().cloned().collect()
    }

    /// Whether a plugin that is warm cannot work without a watch.
    pub fn needs(&self, informer: &Arc<Informer>) -> bool {
        self.0.values().flat_map(|start| start.warm.iter().flatten()).any(|needed| Arc::ptr_eq(needed, informer))
    }
}
