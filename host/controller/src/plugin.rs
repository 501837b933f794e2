//! A plugin that is at work: its reconciler and the watches it uses. Immutable; a swap makes a new one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use pilothouse_engine::{Manifest, Reconciler, contract::KindRef};

use tokio::sync::watch;

use crate::{
    cache::{Caches, Object, Scope, State, Watched},
    labels,
    pipeline::{excerpt::Excerpts, guard::Probation},
};

/// One version of a plugin with everything it needs to reconcile.
pub struct ActivePlugin {
    /// The plugin itself.
    pub reconciler: Arc<dyn Reconciler>,
    /// Its name, shared by its keys.
    pub name: Arc<str>,
    /// Its field manager.
    pub field_manager: String,
    /// What it is shown of its objects and their children.
    pub excerpts: Excerpts,
    /// The watch of the kind it reconciles.
    pub objects: Arc<Watched>,
    /// The watches of its child kinds.
    pub children: BTreeMap<KindRef, Arc<Watched>>,
    /// The watches of kinds that it no longer declares, but earlier versions had children of.
    pub former: BTreeMap<KindRef, Arc<Watched>>,
    /// Whether another version has come to work in its place, or none.
    superseded: watch::Sender<bool>,
    /// The version's first time at work.
    pub probation: Probation,
    /// The watches of the kinds it looks up.
    pub lookups: BTreeMap<KindRef, Arc<Watched>>,
}

impl ActivePlugin {
    /// Starts or joins the watches that a plugin needs.
    pub fn new(reconciler: Arc<dyn Reconciler>, caches: &Caches) -> Self {
        let manifest = reconciler.manifest();
        let watch_all = |kinds: &[KindRef], scope| {
            kinds.iter().map(|kind| (kind.clone(), caches.watch(kind, scope))).collect::<BTreeMap<_, _>>()
        };
        Self {
            name: manifest.name.as_str().into(),
            field_manager: labels::field_manager(&manifest.name),
            excerpts: Excerpts::declared(manifest),
            objects: caches.watch(&manifest.reconciles, Scope::All),
            children: watch_all(&manifest.children, Scope::Children),
            former: BTreeMap::new(),
            superseded: watch::Sender::new(false),
            probation: Probation::begin([]),
            lookups: watch_all(&manifest.lookups, Scope::All),
            reconciler,
        }
    }

    /// Also watches kinds that earlier versions had children of, to prune them.
    pub fn watch_former(&mut self, kinds: &BTreeSet<KindRef>, caches: &Caches) {
        self.former = kinds.iter().map(|kind| (kind.clone(), caches.watch(kind, Scope::Children))).collect();
    }

    /// Begins the version's probation, for all objects that are there.
    pub fn begin_probation(&mut self) {
        self.probation = Probation::begin(self.objects.store().names());
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

    /// Stops watching the former kinds that have nothing left to prune, and tells which.
    pub fn drop_pruned(&mut self) -> BTreeSet<KindRef> {
        let is_left = |child: &Object| {
            let of_plugin = child.labels.get(labels::PLUGIN).is_some_and(|plugin| **plugin == *self.name);
            let reconciles = self.objects.kind();
            let of_kind = child.controller.as_ref().is_some_and(|owner| *owner.kind == *reconciles.kind);
            (of_plugin || of_kind) && !child.is_kept()
        };
        let is_pruned = |watched: &Watched| match watched.state() {
            State::Synced => watched.store().select(None, is_left).is_empty(),
            State::NotInstalled => true,
            State::Starting | State::Failing(_) => false,
        };
        let pruned: BTreeSet<_> =
            self.former.iter().filter(|(_, watched)| is_pruned(watched)).map(|(kind, _)| kind.clone()).collect();
        self.former.retain(|kind, _| !pruned.contains(kind));
        pruned
    }

    /// The watch of a kind that it has or had children of.
    pub fn child_watch(&self, kind: &KindRef) -> Option<&Arc<Watched>> {
        self.children.get(kind).or_else(|| self.former.get(kind))
    }

    /// What the plugin declares.
    pub fn manifest(&self) -> &Manifest {
        self.reconciler.manifest()
    }

    /// The watches that it cannot work without. It goes on without a kind that it looks up, for the lookup tells it, be it
    /// also one of its child kinds; and without a former kind.
    pub fn needed(&self) -> impl Iterator<Item = &Arc<Watched>> {
        let is_optional = |kind: &KindRef, watched: &Watched| {
            self.lookups.contains_key(kind) && watched.state() == State::NotInstalled
        };
        let children = self.children.iter().filter(move |(kind, watched)| !is_optional(kind, watched));
        std::iter::once(&self.objects).chain(children.map(|(_, watched)| watched))
    }

    /// The watches of all kinds that it declares.
    pub fn watches(&self) -> impl Iterator<Item = &Arc<Watched>> {
        std::iter::once(&self.objects).chain(self.children.values()).chain(self.lookups.values())
    }

    /// Waits until reconciling can begin: its objects are known, and of every other kind either the objects or the
    /// reason why not.
    pub async fn until_settled(&self) {
        self.objects.until(|state| *state == State::Synced).await;
        for watched in self.watches().chain(self.former.values()) {
            watched.until(|state| *state != State::Starting).await;
        }
    }
}
