//! The arguments of every stage: the object that is reconciled, its plugin, and the shared parts of the controller. Holds no state
//! of its own.

use std::sync::Arc;

use kube::Client;

use super::last_reconcile::Notes;
use crate::{
    clock::Clock,
    events::{Author, Event, Recorded, Recorder},
    identity::{Identities, ServiceAccount},
    lookups::{CachedLookups, Contents, IndexedLookups, LookupIndex, Needed, Reader},
    metrics::Metrics,
    object::Object,
    plugin::ActivePlugin,
    queue::Key,
};

/// The parts of the controller that all reconciles share.
pub struct Context {
    /// The accounts that plugins work with.
    pub identities: Arc<Identities>,
    /// The index of which object looked up what.
    pub lookups: Arc<LookupIndex>,
    /// What is in the objects of which only the metadata is watched and that some object looks up.
    pub contents: Arc<Contents>,
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
    /// What the reconcile does, in words, for people.
    pub notes: &'a Notes,
}

impl WorkItem<'_> {
    /// The account that the plugin works with for this object; none for the host's own.
    pub fn account(&self) -> Option<ServiceAccount> {
        let account = self.plugin.account.as_ref()?;
        Some(account.for_namespace(&self.key.object.namespace))
    }

    /// The client for the children, which are the account's.
    pub fn client(&self) -> Client {
        self.context.identities.client_within(self.plugin.permit.as_ref(), self.account().as_ref())
    }

    /// The client for the object, which is the host's.
    pub fn host_client(&self) -> Client {
        self.context.identities.client_within(self.plugin.permit.as_ref(), None)
    }

    /// Lookups that the caches answer, with the object's permissions.
    pub fn lookups(&self) -> CachedLookups {
        let identities = &self.context.identities;
        CachedLookups {
            namespace: self.key.object.namespace.clone(),
            kinds: self.plugin.lookups.clone(),
            served: self.plugin.namespaces.clone(),
            reader: self.account().map(|account| Reader::new(account, identities.clone())),
            contents: self.context.contents.clone(),
            needed: Arc::<Needed>::default(),
        }
    }

    /// The same, but each lookup is indexed: a change of what it returned triggers a reconcile of the object. For calls.
    pub fn indexed_lookups(&self) -> IndexedLookups {
        IndexedLookups::new(self.lookups(), self.context.lookups.clone(), self.key.clone())
    }

    /// Counts a fault in the metrics and records it as an Event on the object.
    pub fn record_fault(&self, object: &Object, fault: &Event) -> Recorded {
        self.context.metrics.faults.count(&self.plugin.name, &fault.reason);
        self.record_event(Author::Host(&self.plugin.name), object, fault)
    }

    /// Records an Event of the plugin on the object.
    pub fn record_plugin_event(&self, object: &Object, event: &Event) -> Recorded {
        self.record_event(Author::Plugin(&self.plugin.name), object, event)
    }

    fn record_event(&self, author: Author<'_>, object: &Object, event: &Event) -> Recorded {
        let recorded = self.context.events.record(author, self.plugin.objects.kind(), object, event);
        if recorded == Recorded::Dropped {
            self.context.metrics.dropped.event(&self.plugin.name);
        }
        recorded
    }
}
