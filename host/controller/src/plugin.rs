//! A plugin that is at work: its reconciler and the watches it uses. Immutable; a swap makes a new one.

use std::{collections::BTreeMap, sync::Arc};

use pilothouse_engine::{Manifest, Reconciler, contract::KindRef};

use crate::{
    cache::{Caches, Scope, State, Watched},
    labels,
};

/// One version of a plugin with everything it needs to reconcile.
pub struct ActivePlugin {
    /// The plugin itself.
    pub reconciler: Arc<dyn Reconciler>,
    /// Its name, shared by its keys.
    pub name: Arc<str>,
    /// Its field manager.
    pub field_manager: String,
    /// The watch of the kind it reconciles.
    pub objects: Arc<Watched>,
    /// The watches of its child kinds.
    pub children: BTreeMap<KindRef, Arc<Watched>>,
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
            objects: caches.watch(&manifest.reconciles, Scope::All),
            children: watch_all(&manifest.children, Scope::Children),
            lookups: watch_all(&manifest.lookups, Scope::All),
            reconciler,
        }
    }

    /// What the plugin declares.
    pub fn manifest(&self) -> &Manifest {
        self.reconciler.manifest()
    }

    /// Waits until reconciling can begin: its objects are known, and of every other kind either the objects or the
    /// reason why not.
    pub async fn until_settled(&self) {
        self.objects.until(|state| *state == State::Synced).await;
        for watched in self.children.values().chain(self.lookups.values()) {
            watched.until(|state| *state != State::Starting).await;
        }
    }
}
