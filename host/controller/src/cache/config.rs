//! The settings of a watch: which objects, in which namespace, for how long. Holds no state.

use std::{sync::Arc, time::Duration};

use pilothouse_engine::{Lookup, contract::KindRef};

use crate::schema::SchemaCache;

/// Which objects of a kind are watched.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WatchScope {
    /// All of them: the objects that a plugin reconciles, and the objects that it looks up.
    All,
    /// Those with the label [`crate::labels::PLUGIN`]: the children of this host's plugins.
    Children,
    /// A part, for lookups that are confined to it.
    LookedUp {
        /// The label selector of the objects; empty for all.
        labels: Arc<str>,
        /// Whether no more than their metadata is watched.
        metadata_only: bool,
    },
}

impl WatchScope {
    /// What a lookup needs. One that is confined to nothing shares the cache of all objects of its kind.
    pub fn of_lookup(lookup: &Lookup) -> Self {
        match (lookup.label_selector.as_str(), lookup.metadata_only || is_read_when_looked_up(lookup)) {
            ("", false) => Self::All,
            (labels, metadata_only) => Self::LookedUp { labels: labels.into(), metadata_only },
        }
    }
}

/// Whether only the metadata of what may be looked up is watched, and each object is read when one looks it up: credentials that nobody uses
/// shall not be in the host's memory.
pub fn is_read_when_looked_up(lookup: &Lookup) -> bool {
    !lookup.metadata_only && lookup.kind.is_same_kind(&KindRef::new("v1", "Secret"))
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
