//! The arguments of every stage: the object that is reconciled, its plugin, and the shared parts of the controller. Holds no state
//! of its own.

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

/// The parts of the controller that all reconciles share.
pub struct Context {
    /// The client of the API server.
    pub client: Client,
    /// The index of which object looked up what.
    pub lookups: Arc<LookupIndex>,
    /// The recorder of Events.
    pub events: Recorder,
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// The wall clock.
    pub clock: Clock,
}

/// One object that is being reconciled.
#[derive(Clone, Copy)]
pub struct WorkItem<'a> {
    /// The shared parts.
    pub context: &'a Context,
    /// The active version of the plugin.
    pub plugin: &'a ActivePlugin,
    /// The object's key.
    pub key: &'a Key,
    /// The number of failed reconciles in a row before this one.
    pub failures: u32,
}

impl WorkItem<'_> {
    /// Lookups that the caches answer, with the object's permissions.
    pub fn lookups(&self) -> CachedLookups {
        CachedLookups { namespace: self.key.object.namespace.clone(), kinds: self.plugin.lookups.clone() }
    }

    /// The same, but each lookup is indexed: a change of what it returned triggers a reconcile of the object. For calls.
    pub fn indexed_lookups(&self) -> IndexedLookups {
        IndexedLookups { answers: self.lookups(), index: self.context.lookups.clone(), key: self.key.clone() }
    }

    /// Counts a fault in the metrics and records it as an Event on the object.
    pub fn record_fault(&self, object: &Object, fault: &Event) {
        self.context.metrics.faults.count(&self.plugin.name, &fault.reason);
        self.context.events.record(self.plugin.objects.kind(), object, fault);
    }
}
