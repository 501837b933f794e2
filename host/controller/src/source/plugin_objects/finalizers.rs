//! The finalizers that objects may have because of any version of a `Plugin`: the one at work, one that is tried, and those before of which some
//! are left. They are in the status before a version touches its first object, so that a host that starts knows them, too. Writes nothing.

use std::{collections::BTreeSet, sync::Arc};

use kube::ResourceExt;

use super::PluginObjects;
use crate::{
    api::Plugin,
    cache::WatchState,
    labels,
    pipeline::lifecycle::finalizer,
    source::loader::{Prepared, SourceId},
};

/// The finalizers of these versions, and those that the status of their `Plugin` knows.
pub fn finalizers_of<'p>(plugin: &Plugin, versions: impl Iterator<Item = &'p Arc<Prepared>>) -> Arc<BTreeSet<String>> {
    let own = versions.filter_map(|version| finalizer::own(version.manifest()));
    Arc::new(known(plugin).chain(own).collect())
}

/// Those that the status knows, but for the host's own.
fn known(plugin: &Plugin) -> impl Iterator<Item = String> {
    let known = plugin.status.iter().flat_map(|status| &status.finalizers);
    known.filter(|finalizer| *finalizer != labels::ORDERED_DELETION).cloned()
}

impl PluginObjects {
    /// The finalizers of a `Plugin`'s versions, the one that is about to be tried among them, and those of versions before that an object still
    /// has.
    pub(super) fn finalizers(&self, plugin: &Plugin) -> BTreeSet<String> {
        let name = plugin.name_any();
        let loaded = self.looker.loader.versions(&SourceId::Object(name.clone()));
        let versions = loaded.iter().flat_map(|loaded| loaded.all()).chain(self.to_try.get(&name));
        let mut all: BTreeSet<_> = versions.filter_map(|version| finalizer::own(version.manifest())).collect();
        let former: BTreeSet<_> = known(plugin).filter(|known| !all.contains(known)).collect();
        // Seldom there are any, and then all objects are looked through.
        if !former.is_empty() {
            let active = self.active(&name).filter(|active| active.objects.state() == WatchState::Synced);
            let is_left = |finalizer: &String| {
                active.as_ref().is_none_or(|active| {
                    let has_it = |held: &str| held == finalizer;
                    !active
                        .objects
                        .store()
                        .select(None, |object| object.finalizers.iter().any(|held| has_it(held)))
                        .is_empty()
                })
            };
            all.extend(former.into_iter().filter(is_left));
        }
        all
    }
}
