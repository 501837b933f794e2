//! Which of several `Plugin`s has a name, a kind or a metric that they all want: the oldest one that loads. The others wait until something
//! else is in their way or nothing is, and are not tried before. Loads nothing.

use std::{collections::BTreeSet, sync::Arc};

use kube::ResourceExt;
use pilothouse_engine::{Manifest, contract::KindRef};

use super::{Due, PluginObjects, blocked::Blocked, is_older};
use crate::{
    api::Plugin,
    source::loader::{LoadedVersions, NotLoaded, SourceId},
};

impl PluginObjects {
    /// Installs versions, unless an older `Plugin` has what they want, or is about to have it. Younger ones make room, if nothing else is in
    /// the way.
    pub(super) fn install(&mut self, plugin: &Plugin, versions: LoadedVersions) -> Result<(), NotLoaded> {
        let (name, loader) = (plugin.name_any(), self.looker.loader.clone());
        let manifest = versions.stable.manifest().clone();
        let installed = self.room_for(plugin, &manifest).and_then(|younger| {
            // The younger ones go first: two plugins of one kind at work at the same time would undo what the other writes.
            for other in younger {
                loader.remove(&SourceId::Object(other.clone()));
                self.look_at(&other, Due::Source);
            }
            loader.install(&SourceId::Object(name.clone()), versions)
        });
        if let Err(conflict) = &installed {
            let by = conflict.in_the_way().cloned();
            self.blocked.insert(name, Blocked { manifest, by, at: self.changes_so_far() });
        }
        installed
    }

    /// Looks again at those for which another plugin has made room, or has taken the place of the one that was in the way.
    pub(super) fn look_at_freed(&mut self) {
        let changes = self.changes_so_far();
        let waiting = self.blocked.iter().filter(|(name, it)| it.at != changes && !self.looks.is_under_way(name));
        let freed = waiting.filter(|(name, blocked)| {
            let room = self.plugins.get(*name).map(|plugin| self.room_for(plugin, &blocked.manifest));
            room.is_some_and(|room| room.err().is_none_or(|conflict| conflict.in_the_way() != blocked.by.as_ref()))
        });
        let freed: Vec<_> = freed.map(|(name, _)| name.clone()).collect();
        for name in freed {
            self.look_at(&name, Due::Source);
        }
        self.look_at_crowded();
    }

    /// What is another number once something has changed for those who wait for another plugin.
    fn changes_so_far(&self) -> u64 {
        self.looker.loader.changes() + self.first_looks
    }

    /// The younger `Plugin`s that have to make room for what declares this; the first conflict with anybody else.
    pub(super) fn room_for(&self, plugin: &Plugin, manifest: &Manifest) -> Result<BTreeSet<String>, NotLoaded> {
        let is_owner = manifest.decorates.is_none();
        // After a start, the Plugins load in any order. Without this, the faster one would own the kind for a moment.
        if let Some(elder) = self.elder_to_come(plugin, &manifest.reconciles).filter(|_| is_owner) {
            let (kind, plugin) = (manifest.reconciles.clone(), elder.clone());
            return Err(NotLoaded::KindTaken { kind, plugin, source_id: SourceId::Object(elder) });
        }
        let mut younger = BTreeSet::new();
        for conflict in self.looker.loader.conflicts(&SourceId::Object(plugin.name_any()), manifest) {
            match conflict.in_the_way() {
                Some(SourceId::Object(other))
                    if self.plugins.get(other).is_none_or(|other| is_older(plugin, other)) =>
                {
                    younger.insert(other.clone());
                }
                _ => return Err(conflict),
            }
        }
        Ok(younger)
    }

    /// An older `Plugin` that owned this kind before this host started, and has not been looked at yet. A decorator owns none.
    fn elder_to_come(&self, plugin: &Plugin, kind: &KindRef) -> Option<String> {
        let had = |other: &&Arc<Plugin>| {
            let status = other.status.as_ref().filter(|status| !status.decorates);
            let before = status.and_then(|status| status.reconciles.as_ref());
            before.is_some_and(|before| KindRef::new(&before.api_version, &before.kind).is_same_kind(kind))
        };
        let is_to_come = |other: &&Arc<Plugin>| {
            let name = other.name_any();
            !self.known.contains_key(&name) && self.looks.is_under_way(&name) && is_older(other, plugin)
        };
        self.plugins.values().filter(had).find(is_to_come).map(|other| other.name_any())
    }
}
