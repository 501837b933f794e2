//! What plugins keep in the host's memory for as long as they are loaded, called or not, and how much all of them may keep: whoever may
//! create `Plugin`s or files could take it from everybody else with many small ones. Those that worked when the host ended have their
//! places kept. Loads nothing, and does not know what a component keeps.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use prometheus_client::metrics::gauge::Gauge;
use tokio::time::{Instant, timeout};

use super::source_id::SourceId;
use crate::observable::Observable;

/// The part of what all may keep that is added while one version takes the place of another: both are loaded then.
const PART_FOR_SWAPS: usize = 4;

/// How long a place is kept for what worked before the host started and is not to be had yet.
const PLACE_KEPT: Duration = Duration::from_secs(600);

/// How long new plugins wait until it is known which ones worked before: there may be no API server that says it.
const MOST_WAITED: Duration = Duration::from_secs(30);

/// The memory of the plugins that are loaded.
pub struct PluginMemory {
    most: usize,
    state: Mutex<State>,
    /// Whether it is known which ones worked before the host started.
    is_known: Observable<bool>,
    /// What all keep together, as a metric.
    told: Gauge,
}

#[derive(Default)]
struct State {
    /// What each source keeps.
    kept: BTreeMap<SourceId, usize>,
    /// The places of those that worked before the host started and are not loaded yet.
    places: BTreeMap<SourceId, Place>,
}

/// What is kept free for a source.
struct Place {
    bytes: usize,
    until: Instant,
}

/// What a version would keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    /// It, in bytes.
    pub bytes: usize,
    /// What other versions of its source keep that stay when it works. The rest goes then.
    pub beside: usize,
}

impl Wanted {
    /// What would be kept in the place of all that the source keeps.
    pub fn instead(bytes: usize) -> Self {
        Self { bytes, beside: 0 }
    }

    /// The same with so many bytes more.
    pub fn and(self, more: usize) -> Self {
        Self { bytes: self.bytes.saturating_add(more), ..self }
    }
}

/// All may keep no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it would keep {} KiB of the host's memory, and {} KiB of the {} MiB are left that plugins may keep together; remove one that nobody \
     needs, or give the host more (--plugin-memory)",
    .wanted.bytes >> 10, .left >> 10, .most >> 20
)]
pub struct NoRoom {
    /// What it would keep.
    pub wanted: Wanted,
    left: usize,
    most: usize,
}

impl NoRoom {
    /// The same if so many bytes have to be kept together with it that are counted as beside it.
    pub fn together_with(self, bytes: usize) -> Self {
        let Wanted { bytes: own, beside } = self.wanted;
        Self { wanted: Wanted { bytes: own.saturating_add(bytes), beside: beside.saturating_sub(bytes) }, ..self }
    }
}

/// What one version of a plugin keeps. It is free again when this is dropped.
pub struct Kept {
    memory: Arc<PluginMemory>,
    id: SourceId,
    bytes: usize,
}

impl Kept {
    /// It.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl PluginMemory {
    /// So many bytes for all plugins together. What they keep is told by a metric.
    pub fn new(most: usize, told: Gauge) -> Arc<Self> {
        Arc::new(Self { most, state: Mutex::default(), is_known: Observable::new(true), told })
    }

    /// Takes what a version of a source keeps.
    ///
    /// # Errors
    /// [`NoRoom`].
    pub fn take(self: &Arc<Self>, id: &SourceId, wanted: Wanted) -> Result<Kept, NoRoom> {
        let (mut state, bytes) = (self.lock(), wanted.bytes);
        let left = self.left(&state, id, wanted);
        if bytes > left {
            return Err(NoRoom { wanted, left, most: self.most });
        }
        *state.kept.entry(id.clone()).or_default() += bytes;
        self.tell(&state);
        Ok(Kept { memory: self.clone(), id: id.clone(), bytes })
    }

    /// Whether so much is left for a source.
    pub fn has_room(&self, id: &SourceId, wanted: Wanted) -> bool {
        wanted.bytes <= self.left(&self.lock(), id, wanted)
    }

    /// A source worked before the host started, and kept so many bytes: others leave room for it for some minutes.
    pub fn keep_place(&self, id: SourceId, bytes: usize) {
        self.lock().places.insert(id, Place { bytes, until: Instant::now() + PLACE_KEPT });
    }

    /// A source needs no place any more: it has loaded, is refused for what it is, or is gone.
    pub fn give_place_up(&self, id: &SourceId) {
        self.lock().places.remove(id);
    }

    /// How many bytes are kept free for a source, if any are.
    pub fn place(&self, id: &SourceId) -> Option<usize> {
        self.lock().places.get(id).filter(|place| place.is_kept()).map(|place| place.bytes)
    }

    /// Whether it is known by now which ones worked before the host started.
    pub fn know_those_of_before(&self, is_known: bool) {
        self.is_known.set(is_known);
    }

    /// Waits until it is known which ones worked before the host started, for some time at most.
    pub async fn those_of_before(&self) {
        if timeout(MOST_WAITED, self.is_known.wait_for(|is_known| *is_known)).await.is_err() {
            tracing::warn!("which Plugins worked before is not known yet; new plugins are loaded all the same");
            self.know_those_of_before(true);
        }
    }

    /// What is left for a version of a source. Where more is kept than may be once all swaps are done, a swap never ends, so a version has to
    /// find room without what it takes the place of, too.
    fn left(&self, state: &State, id: &SourceId, wanted: Wanted) -> usize {
        let own = state.kept.get(id).copied().unwrap_or_default();
        let others = state.kept.values().sum::<usize>() - own;
        let is_in_place = state.places.get(id).is_some_and(|place| place.has(wanted));
        let others = if is_in_place { others } else { others.saturating_add(state.places_beside(id)) };
        let at_last = self.most.saturating_sub(others.saturating_add(wanted.beside));
        let during_swap = self.most.saturating_add(self.most / PART_FOR_SWAPS);
        at_last.min(during_swap.saturating_sub(others.saturating_add(own)))
    }

    fn tell(&self, state: &State) {
        let kept: usize = state.kept.values().sum();
        self.told.set(i64::try_from(kept).unwrap_or(i64::MAX));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What is kept free for all but this source, beyond what they keep already.
    fn places_beside(&self, id: &SourceId) -> usize {
        let others = self.places.iter().filter(|(other, place)| *other != id && place.is_kept());
        let free = others.map(|(id, place)| place.bytes.saturating_sub(self.kept.get(id).copied().unwrap_or_default()));
        free.fold(0, usize::saturating_add)
    }
}

impl Place {
    fn is_kept(&self) -> bool {
        Instant::now() < self.until
    }

    /// Whether a version fits here, with those beside it.
    fn has(&self, wanted: Wanted) -> bool {
        self.is_kept() && wanted.bytes.saturating_add(wanted.beside) <= self.bytes
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

    const MIB: usize = 1 << 20;

    fn id(name: &str) -> SourceId {
        SourceId::Object(name.to_owned())
    }

    fn memory(mebibytes: usize) -> Arc<PluginMemory> {
        PluginMemory::new(mebibytes * MIB, Gauge::default())
    }

    fn mib(mebibytes: usize) -> Wanted {
        Wanted::instead(mebibytes * MIB)
    }

    /// Takes one MiB for each.
    fn filled<const N: usize>(memory: &Arc<PluginMemory>, names: [&str; N]) -> Vec<Result<Kept, NoRoom>> {
        names.map(|name| memory.take(&id(name), mib(1))).into_iter().collect()
    }

    #[test]
    fn plugins_share_the_memory_that_they_may_keep() {
        let memory = memory(4);
        let kept = filled(&memory, ["a", "b", "c", "d"]);
        assert!(kept.iter().all(Result::is_ok));
        let refused = memory.take(&id("e"), mib(2)).err();
        assert_eq!(refused, Some(NoRoom { wanted: mib(2), left: 0, most: 4 * MIB }));
        let words = refused.map(|refused| refused.to_string()).unwrap_or_default();
        assert!(words.contains("2048 KiB") && words.contains("0 KiB of the 4 MiB"), "{words}");
        drop(kept);
        assert!(memory.take(&id("e"), mib(2)).is_ok());
    }

    #[test]
    fn what_plugins_keep_is_told() {
        let told = Gauge::default();
        let memory = PluginMemory::new(4 * MIB, told.clone());
        let first = memory.take(&id("a"), mib(1)).ok();
        let second = memory.take(&id("b"), mib(2)).ok();
        assert_eq!(told.get(), 3 * MIB as i64);
        drop(second);
        assert_eq!(told.get(), MIB as i64);
        drop(first);
        assert_eq!(told.get(), 0);
    }

    #[test]
    fn a_plugin_that_works_gets_its_next_version_though_there_is_no_room_for_others() {
        let memory = memory(4);
        let kept = filled(&memory, ["a", "b", "c", "d"]);
        let next = memory.take(&id("a"), mib(1));
        assert!(next.is_ok() && !memory.has_room(&id("e"), Wanted::instead(1)));
        // A quarter as much again, and no more.
        assert!(memory.take(&id("b"), mib(1)).is_err());
        drop(kept);
        assert!(memory.has_room(&id("e"), mib(3)) && !memory.has_room(&id("e"), mib(3).and(1)));
    }

    #[test]
    fn what_is_kept_for_swaps_is_nobodys_for_good() {
        let memory = memory(4);
        let _others = filled(&memory, ["a", "b", "c"]);
        let _own = memory.take(&id("d"), Wanted::instead(MIB / 2));
        // Without the version before it, all would keep more than they may.
        assert!(memory.take(&id("d"), mib(1).and(1)).is_err());
        let next = memory.take(&id("d"), mib(1));
        assert!(next.is_ok());
    }

    #[test]
    fn versions_that_stay_beside_another_count() {
        let memory = memory(4);
        let _others = filled(&memory, ["a", "b"]);
        let own = memory.take(&id("c"), mib(1));
        let beside = own.as_ref().map_or(0, Kept::bytes);
        assert!(memory.has_room(&id("c"), mib(2)) && !memory.has_room(&id("c"), Wanted { beside, ..mib(2) }));
        assert!(memory.has_room(&id("c"), Wanted { beside, ..mib(1) }));
    }

    #[test]
    fn what_needs_another_version_beside_it_waits_for_the_room_of_both() {
        let memory = memory(4);
        let others = filled(&memory, ["a", "b", "c"]);
        let refused = {
            let first = memory.take(&id("d"), mib(1));
            let beside = first.as_ref().map_or(0, Kept::bytes);
            memory.take(&id("d"), Wanted { beside, ..mib(1) }).err().map(|refused| refused.together_with(beside))
        };
        let wanted = refused.map(|refused| refused.wanted);
        assert_eq!(wanted, Some(mib(2)));
        assert!(wanted.is_some_and(|wanted| !memory.has_room(&id("d"), wanted)));
        drop(others);
        assert!(wanted.is_some_and(|wanted| memory.has_room(&id("d"), wanted)));
    }

    #[test]
    fn those_that_worked_before_the_start_come_first() {
        let memory = memory(2);
        for name in ["a", "b"] {
            memory.keep_place(id(name), MIB);
        }
        assert!(memory.take(&id("new"), mib(1)).is_err());
        let first = memory.take(&id("a"), mib(1));
        assert!(first.is_ok() && memory.take(&id("new"), mib(1)).is_err());
        // It is gone, or its source is.
        memory.give_place_up(&id("b"));
        assert!(memory.take(&id("new"), mib(1)).is_ok());
    }

    #[test]
    fn what_has_grown_since_leaves_their_places_to_the_others() {
        let memory = memory(5);
        memory.keep_place(id("a"), MIB);
        memory.keep_place(id("b"), 3 * MIB);
        assert!(memory.take(&id("a"), mib(3)).is_err());
        let grown = memory.take(&id("a"), mib(2));
        assert!(grown.is_ok() && memory.take(&id("b"), mib(3)).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn a_place_is_kept_for_some_minutes() {
        let memory = memory(2);
        memory.keep_place(id("away"), 2 * MIB);
        tokio::time::advance(PLACE_KEPT - Duration::from_secs(1)).await;
        assert!(!memory.has_room(&id("new"), mib(1)));
        assert_eq!(memory.place(&id("away")), Some(2 * MIB));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(memory.has_room(&id("new"), mib(2)));
        assert_eq!(memory.place(&id("away")), None);
    }

    #[tokio::test(start_paused = true)]
    async fn new_plugins_wait_until_it_is_known_which_ones_worked_before() {
        let memory = memory(2);
        memory.those_of_before().await;
        memory.know_those_of_before(false);
        let started = Instant::now();
        let known_soon = async {
            tokio::time::sleep(Duration::from_secs(2)).await;
            memory.know_those_of_before(true);
        };
        tokio::join!(memory.those_of_before(), known_soon);
        assert_eq!(started.elapsed(), Duration::from_secs(2));
        // Nobody says it.
        memory.know_those_of_before(false);
        memory.those_of_before().await;
        assert_eq!(started.elapsed(), Duration::from_secs(2) + MOST_WAITED);
        memory.those_of_before().await;
        assert_eq!(started.elapsed(), Duration::from_secs(2) + MOST_WAITED);
    }

    #[test]
    fn a_host_that_has_less_than_before_has_those_that_fit() {
        let memory = memory(4);
        let names: Vec<_> = (0..9).map(|number| id(&number.to_string())).collect();
        names.iter().for_each(|id| memory.keep_place(id.clone(), MIB));
        let kept: Vec<_> = names.iter().filter_map(|id| memory.take(id, mib(1)).ok()).collect();
        assert_eq!(kept.len(), 4);
    }
}
