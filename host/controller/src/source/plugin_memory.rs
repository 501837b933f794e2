//! What plugins keep in the host's memory for as long as they are loaded, called or not, and how much all of them may keep: whoever may
//! create `Plugin`s or files could take it from everybody else with many small ones. An estimate from the size of the component, on
//! the safe side, so that it is known before anything is compiled. Loads nothing.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use prometheus_client::metrics::gauge::Gauge;

use super::source_id::SourceId;

/// What a plugin keeps, however small it is: types, tables, watches, and what is counted of it.
const BASE: usize = 512 << 10;

/// So many bytes of the component cost one more. Its machine code is in memory while it is called only.
const BYTES_FOR_ONE: usize = 2;

/// The part of what all may keep that is added for those that work already: their next versions are loaded beside them.
const PART_FOR_NEXT_VERSIONS: usize = 4;

/// What a component of this size keeps, in bytes.
pub fn kept_by(component: usize) -> usize {
    BASE + component / BYTES_FOR_ONE
}

/// The memory of the plugins that are loaded.
pub struct PluginMemory {
    most: usize,
    state: Mutex<State>,
    /// What all keep together, as a metric.
    told: Gauge,
}

#[derive(Default)]
struct State {
    /// What each source keeps.
    kept: BTreeMap<SourceId, usize>,
    /// What those will keep that worked before the host started and are not loaded yet.
    expected: BTreeMap<SourceId, usize>,
}

/// All may keep no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it would keep {} KiB of the host's memory, and {} KiB of the {} MiB are left that plugins may keep together; remove one that nobody \
     needs, or give the host more (--plugin-memory)",
    .wanted >> 10, .left >> 10, .most >> 20
)]
pub struct NoRoom {
    /// What it would keep, in bytes.
    pub wanted: usize,
    left: usize,
    most: usize,
}

/// What one version of a plugin keeps. It is free again when this is dropped.
pub struct Kept {
    memory: Arc<PluginMemory>,
    id: SourceId,
    bytes: usize,
}

impl PluginMemory {
    /// So many bytes for all plugins together. What they keep is told by a metric.
    pub fn new(most: usize, told: Gauge) -> Arc<Self> {
        Arc::new(Self { most, state: Mutex::default(), told })
    }

    /// Takes what a component of this size keeps.
    ///
    /// # Errors
    /// [`NoRoom`].
    pub fn take(self: &Arc<Self>, id: &SourceId, component: usize) -> Result<Kept, NoRoom> {
        let (mut state, bytes) = (self.lock(), kept_by(component));
        self.room_for(&state, id, bytes)?;
        *state.kept.entry(id.clone()).or_default() += bytes;
        self.tell(&state);
        Ok(Kept { memory: self.clone(), id: id.clone(), bytes })
    }

    /// Whether so many bytes are left for a source.
    pub fn has_room(&self, id: &SourceId, bytes: usize) -> bool {
        self.room_for(&self.lock(), id, bytes).is_ok()
    }

    /// A source worked before the host started: those that did not leave room for it until it has been looked at.
    pub fn expect(&self, id: SourceId, component: usize) {
        self.lock().expected.insert(id, kept_by(component));
    }

    /// A source has been looked at, or is gone.
    pub fn looked_at(&self, id: &SourceId) {
        self.lock().expected.remove(id);
    }

    fn room_for(&self, state: &State, id: &SourceId, wanted: usize) -> Result<(), NoRoom> {
        let is_known = state.kept.contains_key(id) || state.expected.contains_key(id);
        let kept: usize = state.kept.values().sum();
        let (used, most) = match is_known {
            true => (kept, self.most.saturating_add(self.most / PART_FOR_NEXT_VERSIONS)),
            false => {
                let to_come = state.expected.iter().filter(|(id, _)| !state.kept.contains_key(*id));
                (kept + to_come.map(|(_, bytes)| bytes).sum::<usize>(), self.most)
            }
        };
        let left = most.saturating_sub(used);
        if wanted <= left { Ok(()) } else { Err(NoRoom { wanted, left, most: self.most }) }
    }

    fn tell(&self, state: &State) {
        let kept: usize = state.kept.values().sum();
        self.told.set(i64::try_from(kept).unwrap_or(i64::MAX));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let mut state = self.memory.lock();
        if let Some(kept) = state.kept.get_mut(&self.id) {
            *kept = kept.saturating_sub(self.bytes);
            if *kept == 0 {
                state.kept.remove(&self.id);
            }
        }
        self.memory.tell(&state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> SourceId {
        SourceId::Object(name.to_owned())
    }

    #[test]
    fn plugins_share_the_memory_that_they_may_keep() {
        let memory = PluginMemory::new(4 * BASE, Gauge::default());
        let kept: Vec<_> = ["a", "b", "c", "d"].map(|name| memory.take(&id(name), 0)).into_iter().collect();
        assert!(kept.iter().all(Result::is_ok));
        let refused = memory.take(&id("e"), 2 << 20).err();
        assert_eq!(refused, Some(NoRoom { wanted: BASE + (1 << 20), left: 0, most: 4 * BASE }));
        let words = refused.map(|refused| refused.to_string()).unwrap_or_default();
        assert!(words.contains("1536 KiB") && words.contains("0 KiB of the 2 MiB"), "{words}");
        drop(kept);
        assert!(memory.take(&id("e"), 2 << 20).is_ok());
    }

    #[test]
    fn what_plugins_keep_is_told() {
        let told = Gauge::default();
        let memory = PluginMemory::new(4 * BASE, told.clone());
        let first = memory.take(&id("a"), 0).ok();
        let second = memory.take(&id("b"), 2 << 20).ok();
        assert_eq!(told.get(), 2 * BASE as i64 + (1 << 20));
        drop(second);
        assert_eq!(told.get(), BASE as i64);
        drop(first);
        assert_eq!(told.get(), 0);
    }

    #[test]
    fn a_plugin_that_works_gets_its_next_version_though_there_is_no_room_for_others() {
        let memory = PluginMemory::new(4 * BASE, Gauge::default());
        let kept = ["a", "b", "c", "d"].map(|name| memory.take(&id(name), 0));
        let next = memory.take(&id("a"), 0);
        assert!(next.is_ok() && !memory.has_room(&id("e"), 1));
        // A quarter as much again, and no more.
        assert!(memory.take(&id("b"), 0).is_err());
        drop(kept);
        assert!(memory.has_room(&id("e"), 3 * BASE) && !memory.has_room(&id("e"), 3 * BASE + 1));
    }

    #[test]
    fn those_that_worked_before_the_start_come_first() {
        let memory = PluginMemory::new(2 * BASE, Gauge::default());
        for name in ["a", "b"] {
            memory.expect(id(name), 0);
        }
        assert!(memory.take(&id("new"), 0).is_err());
        let first = memory.take(&id("a"), 0);
        assert!(first.is_ok() && memory.take(&id("new"), 0).is_err());
        // It is gone, or its source is.
        memory.looked_at(&id("b"));
        assert!(memory.take(&id("new"), 0).is_ok());
    }

    #[test]
    fn a_host_that_has_less_than_before_has_those_that_fit() {
        let memory = PluginMemory::new(4 * BASE, Gauge::default());
        let names: Vec<_> = (0..9).map(|number| id(&number.to_string())).collect();
        names.iter().for_each(|id| memory.expect(id.clone(), 0));
        let kept: Vec<_> = names.iter().filter_map(|id| memory.take(id, 0).ok()).collect();
        assert_eq!(kept.len(), 5);
    }
}
