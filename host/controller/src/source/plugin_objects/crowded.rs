//! `Plugin`s for which there is no memory that plugins may keep: the older ones are looked at again once there is, and as many as will find
//! room, for each look reads its source. Those that worked when the host ended come before all that are new. Loads nothing.

use kube::ResourceExt;

use super::{Due, PluginObjects, digest_text};
use crate::{
    api::Plugin,
    source::loader::{NotLoaded, SourceId},
};

impl PluginObjects {
    /// Has memory left for those that worked when the host ended, until they have been looked at.
    pub(super) fn expect_those_of_before<'a>(&self, plugins: impl Iterator<Item = &'a Plugin>) {
        for plugin in plugins.filter(|plugin| !plugin.spec.suspended) {
            let worked = plugin.status.as_ref().and_then(|status| status.digest.as_deref());
            if let Some(digest) = worked.and_then(digest_text::digits) {
                let size = self.looker.contents.kept_size(digest).unwrap_or_default();
                self.looker.loader.memory().expect(SourceId::Object(plugin.name_any()), size);
            }
        }
    }

    /// Notes why a component was not loaded, if that is for want of memory.
    pub(super) fn note_crowded(&mut self, name: &str, why: &NotLoaded) {
        if let NotLoaded::NoRoom(no_room) = why {
            self.crowded.insert(name.to_owned(), no_room.wanted);
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
            let has_room = || self.looker.loader.memory().has_room(&SourceId::Object(name.clone()), before + wanted);
            if self.looks.is_under_way(name) {
                before += wanted;
            } else if has_room() {
                before += wanted;
                found.push(name.clone());
            }
        }
        for name in found {
            self.look_at(&name, Due::Source);
        }
    }
}
