//! What every stage works with: the object under work, its plugin, and the shared parts of the controller. Holds no state of
//! its own.

use std::sync::Arc;

use kube::Client;

use crate::{
    clock::Clock,
    events::{Event, Recorder},
    lookups::{CachedLookups, IndexedLookups, LookupIndex},
    metrics::Metrics,
    object::Object,
    plugin::ActivePlugin,
    queue::Key,
};

/// The parts that all reconciles share.
pub struct Context {
    /// The connection.
    pub client: Client,
    /// Who looked up what.
    pub lookups: Arc<LookupIndex>,
    /// Takes Events.
    pub events: Recorder,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// Tells the time of day.
    pub clock: Clock,
}

/// One object under work.
#[derive(Clone, Copy)]
pub struct WorkItem<'a> {
    /// The shared parts.
    pub context: &'a Context,
    /// The version of the plugin that is at work.
    pub plugin: &'a ActivePlugin,
    /// The object.
    pub key: &'a Key,
    /// How many reconciles of it failed in a row before this one.
    pub failures: u32,
}

impl WorkItem<'_> {
    /// Answers the object's lookups from the caches.
    pub fn lookups(&self) -> CachedLookups {
        CachedLookups { namespace: self.key.object.namespace.clone(), kinds: self.plugin.lookups.clone() }
    }

    /// The same for a call: what it looks up wakes the object from then on.
    pub fn indexed_lookups(&self) -> IndexedLookups {
        IndexedLookups { answers: self.lookups(), index: self.context.lookups.clone(), key: self.key.clone() }
    }

    /// Tells of a fault, in the host's own words, where people look: counted, and an Event on the object.
    pub fn tell(&self, object: &Object, fault: &Event) {
        self.context.metrics.faults.count(&self.plugin.name, &fault.reason);
        self.context.events.record(self.plugin.objects.kind(), object, fault);
    }
}
