//! The settings of a watch: which objects, in which namespace, for how long. Holds no state.

use std::{sync::Arc, time::Duration};

use crate::schema::SchemaCache;

/// Which objects of a kind are watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WatchScope {
    /// All of them: the objects that a plugin reconciles, and the objects that it looks up.
    All,
    /// Those with the label [`crate::labels::PLUGIN`]: the children of this host's plugins.
    Children,
}

/// The settings that all watches share.
#[derive(Clone, Debug)]
pub struct WatchConfig {
    /// The only namespace to watch; none means all namespaces.
    pub namespace: Option<Arc<str>>,
    /// How long one watch request lasts before it is renewed, in whole seconds. A watch that sends nothing for a few seconds
    /// longer, not even a bookmark, is restarted. So is a watch that does not deliver a write of this process for that long.
    pub renewal: Duration,
    /// The schemas that are parsed already.
    pub schemas: SchemaCache,
}

impl WatchConfig {
    /// The renewal, clamped to what kube's watcher accepts: it must stay below five minutes.
    pub(super) fn renewal_seconds(&self) -> u32 {
        self.renewal.as_secs().clamp(1, 290) as u32
    }
}
