//! A plugin that is at work: its reconciler and the watches it uses. Immutable; a swap makes a new one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use pilothouse_engine::{Manifest, Reconciler, contract::KindRef};

use tokio::sync::watch;

use super::{new_version::NewVersionWindow, projection::Projections};
use crate::{
    cache::{Caches, Informer, WatchScope, WatchState},
    labels,
    object::{Object, ObjectRef},
};

/// One version of a plugin with everything it needs to reconcile.
pub struct ActivePlugin {
    /// The plugin itself.
    pub reconciler: Arc<dyn Reconciler>,
    /// Its name, shared by its keys.
    pub name: Arc<str>,
    /// Its field manager.
    pub field_manager: String,
    /// Its configuration as JSON text, `null` where there is none.
    pub config: Arc<str>,
    /// What it is shown of its objects and their children.
    pub projections: Projections,
    /// The watch of the kind it reconciles.
    pub objects: Arc<Informer>,
    /// The watches of its child kinds.
    pub children: BTreeMap<KindRef, Arc<Informer>>,
    /// The watches of kinds that it no longer declares, but earlier versions had children of.
    pub former: BTreeMap<KindRef, Arc<Informer>>,
    /// Whether another version has come to work in its place, or none.
    superseded: watch::Sender<bool>,
    /// The first time of this version at work.
    pub new_version: NewVersionWindow,
    /// The watches of the kinds it looks up.
    pub lookups: BTreeMap<KindRef, Arc<Informer>>,
}

impl ActivePlugin {
    /// Starts or joins the watches that a plugin needs.
    pub fn new(reconciler: Arc<dyn Reconciler>, config: Arc<str>, caches: &Caches) -> Self {
        let manifest = reconciler.manifest();
        let watch_all = |kinds: &[KindRef], scope| {
            kinds.iter().map(|kind| (kind.clone(), caches.informer(kind, scope))).collect::<BTreeMap<_, _>>()
        };
        Self {
            name: manifest.name.as_str().into(),
            field_manager: labels::field_manager(&manifest.name),
            config,
            projections: Projections::declared(manifest),
            objects: caches.informer(&manifest.reconciles, WatchScope::All),
            children: watch_all(&manifest.children, WatchScope::Children),
            former: BTreeMap::new(),
            superseded: watch::Sender::new(false),
            new_version: NewVersionWindow::begin([]),
            lookups: watch_all(&manifest.lookups, WatchScope::All),
            reconciler,
        }
    }

    /// Also watches kinds that earlier versions had children of, to prune them.
    pub fn watch_former(&mut self, kinds: &BTreeSet<KindRef>, caches: &Caches) {
        self.former = kinds.iter().map(|kind| (kind.clone(), caches.informer(kind, WatchScope::Children))).collect();
    }

    /// Begins the version's first time at work, with all objects that are there.
    pub fn begin_work(&mut self) {
        self.new_version = NewVersionWindow::begin(self.objects.store().names());
    }

    /// Tells that this version is no longer at work.
    pub fn supersede(&self) {
        self.superseded.send_replace(true);
    }

    /// Waits until this version is no longer at work.
    pub async fn until_superseded(&self) {
        // The sender lives as long as `self`, so waiting ends with the word of it alone.
        if self.superseded.subscribe().wait_for(|superseded| *superseded).await.is_err() {
            std::future::pending().await
        }
    }

    /// Names the version where somebody has to repeat it.
    pub fn short_digest(&self) -> &str {
        let digest = self.reconciler.digest();
        &digest[..digest.floor_char_boundary(12)]
    }

    /// The command that annotates one of its objects.
    pub fn how_to_annotate(&self, object: &Object, annotation: &str) -> String {
        let kind = self.objects.kind();
        let installed = self.objects.installed();
        let plural = installed.map_or_else(|| kind.kind.to_lowercase(), |found| found.resource.plural.clone());
        let ObjectRef { namespace, name } = &object.name;
        let namespace = if namespace.is_empty() { String::new() } else { format!(" -n {namespace}") };
        format!("kubectl annotate{namespace} {plural}.{} {name} {annotation}", kind.group())
    }

    /// Stops watching the former kinds that have nothing left to prune, and tells which.
    pub fn drop_pruned(&mut self) -> BTreeSet<KindRef> {
        let is_left = |child: &Object| {
            let of_plugin = child.labels.get(labels::PLUGIN).is_some_and(|plugin| **plugin == *self.name);
            let reconciles = self.objects.kind();
            let of_kind = child.controller.as_ref().is_some_and(|owner| *owner.kind == *reconciles.kind);
            (of_plugin || of_kind) && !child.is_kept()
        };
        let is_pruned = |informer: &Informer| match informer.state() {
            WatchState::Synced => informer.store().select(None, is_left).is_empty(),
            WatchState::NotInstalled => true,
            WatchState::Starting | WatchState::Failing(_) => false,
        };
        let pruned: BTreeSet<_> =
            self.former.iter().filter(|(_, informer)| is_pruned(informer)).map(|(kind, _)| kind.clone()).collect();
        self.former.retain(|kind, _| !pruned.contains(kind));
        pruned
    }

    /// The watch of a kind that it has or had children of.
    pub fn child_watch(&self, kind: &KindRef) -> Option<&Arc<Informer>> {
        self.children.get(kind).or_else(|| self.former.get(kind))
    }

    /// What the plugin declares.
    pub fn manifest(&self) -> &Manifest {
        self.reconciler.manifest()
    }

    /// The watches that it cannot work without. It goes on without a kind that it looks up, for the lookup tells it, be it
    /// also one of its child kinds; and without a former kind.
    pub fn required(&self) -> impl Iterator<Item = &Arc<Informer>> {
        let is_optional = |kind: &KindRef, informer: &Informer| {
            self.lookups.contains_key(kind) && informer.state() == WatchState::NotInstalled
        };
        let children = self.children.iter().filter(move |(kind, informer)| !is_optional(kind, informer));
        std::iter::once(&self.objects).chain(children.map(|(_, informer)| informer))
    }

    /// The watches of all kinds that it declares.
    pub fn informers(&self) -> impl Iterator<Item = &Arc<Informer>> {
        std::iter::once(&self.objects).chain(self.children.values()).chain(self.lookups.values())
    }

    /// Tells which of its kinds the cluster does not have. It can do without those that it only looks up.
    pub async fn log_missing_kinds(&self) {
        let (plugin, objects) = (&*self.name, std::iter::once(&self.objects));
        let children = self.children.iter().filter(|(kind, _)| !self.lookups.contains_key(*kind));
        for informer in objects.chain(children.map(|(_, informer)| informer)) {
            informer.until(|state| *state != WatchState::Starting).await;
            if informer.state() == WatchState::NotInstalled {
                let kind = informer.kind();
                tracing::warn!(plugin, %kind, "the kind is not installed; apply its CustomResourceDefinition. Waiting for it");
            }
        }
        for (kind, informer) in &self.lookups {
            informer.until(|state| *state != WatchState::Starting).await;
            if informer.state() == WatchState::NotInstalled {
                tracing::info!(plugin, %kind, "a kind that the plugin looks up is not installed; it goes on without");
            }
        }
    }

    /// Waits until reconciling can begin: its objects are known, and of every other kind either the objects or the
    /// reason why not.
    pub async fn until_ready(&self) {
        self.objects.until(|state| *state == WatchState::Synced).await;
        for informer in self.informers().chain(self.former.values()) {
            informer.until(|state| *state != WatchState::Starting).await;
        }
    }
}
