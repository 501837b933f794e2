//! `Plugin`s for which there is no memory that plugins may keep: the older ones are looked at again once there is, and as many as will find
//! room, for each look reads its source. Those that worked when the host ended have their places kept. Loads nothing.

use std::sync::Arc;

use kube::ResourceExt;

use super::{Due, PluginObjects, digest_text, look::FoundVersions};
use crate::{
    api::Plugin,
    source::{
        loader::{NotLoaded, Prepared, SourceId},
        plugin_memory::Wanted,
    },
};

impl PluginObjects {
    /// Keeps places for those that worked when the host ended.
    pub(super) fn keep_places<'a>(&self, plugins: impl Iterator<Item = &'a Plugin>) {
        let memory = self.looker.loader.memory();
        for plugin in plugins.filter(|plugin| !plugin.spec.suspended) {
            if let Some(bytes) = self.kept_before(plugin) {
                memory.keep_place(SourceId::Object(plugin.name_any()), bytes);
            }
        }
        memory.know_those_of_before(true);
    }

    /// What a `Plugin` kept when the host ended; none if it had nothing at work. The status of an older host does not say how much, and the
    /// component may not be kept.
    fn kept_before(&self, plugin: &Plugin) -> Option<usize> {
        let status = plugin.status.as_ref()?;
        if let Some(bytes) = status.memory_bytes {
            return usize::try_from(bytes).ok();
        }
        let digest = digest_text::digits(status.digest.as_deref()?)?;
        Some(self.looker.contents.kept_memory(digest))
    }

    /// What a `Plugin` keeps of the memory of plugins, or what is kept free for it. A version whose last calls are ending does not count here, or
    /// the status would tell of each.
    pub(super) fn memory_of(&self, name: &str) -> Option<usize> {
        let id = SourceId::Object(name.to_owned());
        let mut counted: Vec<Arc<Prepared>> = Vec::new();
        for version in self.prepared(name) {
            if !counted.iter().any(|other| other.shares_memory_with(&version)) {
                counted.push(version);
            }
        }
        let kept = counted.iter().map(|version| version.kept_bytes()).sum::<usize>();
        Some(kept.max(self.looker.loader.memory().place(&id).unwrap_or_default())).filter(|bytes| *bytes > 0)
    }

    /// All versions of a `Plugin` that are ready: at work, to be tried, or held.
    fn prepared(&self, name: &str) -> Vec<Arc<Prepared>> {
        let loaded = self.looker.loader.versions(&SourceId::Object(name.to_owned()));
        let loaded = loaded.iter().flat_map(|loaded| loaded.all().cloned());
        loaded.chain(self.set_aside(name)).collect()
    }

    /// The versions of a `Plugin` that are ready and answer nothing: to be tried, or held.
    pub(super) fn set_aside(&self, name: &str) -> Vec<Arc<Prepared>> {
        self.to_try.get(name).into_iter().chain(self.held.get(name)).cloned().collect()
    }

    /// Notes why a component was not loaded, if that is for want of memory.
    pub(super) fn note_crowded(&mut self, name: &str, why: &NotLoaded) {
        if let NotLoaded::NoRoom(no_room) = why {
            self.crowded.insert(name.to_owned(), no_room.wanted);
        }
    }

    /// Notes versions for which there is no memory and without which the others work. The smallest may find room first.
    pub(super) fn note_crowded_beside(&mut self, name: &str, found: &FoundVersions) {
        let wanted = found.refused.iter().filter_map(|refused| refused.wanted);
        if let Some(least) = wanted.min_by_key(|wanted| wanted.bytes) {
            self.crowded.insert(name.to_owned(), least);
        }
    }

    /// Looks again at those for which there is memory by now, the oldest first.
    pub(super) fn look_at_crowded(&mut self) {
        let mut waiting: Vec<_> =
            self.crowded.iter().filter_map(|(name, wanted)| Some((self.plugins.get(name)?, name, *wanted))).collect();
        waiting.sort_by_cached_key(|(plugin, name, _)| {
            (plugin.creation_timestamp().map(|created| created.0), String::clone(name))
        });
        let (mut before, mut found) = (0, Vec::new());
        for (_, name, wanted) in waiting {
            let has_room =
                |wanted: Wanted| self.looker.loader.memory().has_room(&SourceId::Object(name.clone()), wanted);
            if self.looks.is_under_way(name) {
                before += wanted.bytes;
            } else if has_room(wanted.and(before)) {
                before += wanted.bytes;
                found.push(name.clone());
            }
        }
        for name in found {
            self.look_at(&name, Due::Source);
        }
    }
}
