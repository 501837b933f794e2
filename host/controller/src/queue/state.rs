//! The queue without its lock: who waits, who is worked on, whose time has come. Takes the time from its caller where it
//! matters, so that tests do not wait.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, HashMap, VecDeque},
    sync::Arc,
    time::{Duration, Instant},
};

use super::{Key, Load, Next, Priority, Tally, backoff::backoff, entry::Entry, lane::Lane};

/// All keys of all plugins.
#[derive(Debug, Default)]
pub(super) struct State {
    /// There is an entry only while there is something to remember of its key.
    entries: HashMap<Key, Entry>,
    lanes: HashMap<Arc<str>, Lane>,
    /// Plugins with waiting keys, in turn.
    turns: VecDeque<Arc<str>>,
    timers: BinaryHeap<Reverse<(Instant, Key)>>,
    pub(super) closed: bool,
}

impl State {
    /// Counts a plugin's keys from now on.
    pub(super) fn open(&mut self, plugin: &str) {
        self.lanes.entry(plugin.into()).or_default();
    }

    /// Asks for a key.
    pub(super) fn add(&mut self, key: Key, priority: Priority) {
        let entry = self.entries.entry(key.clone()).or_default();
        if entry.working {
            entry.again = entry.again.max(Some(priority));
            entry.asked.get_or_insert_with(Instant::now);
            return;
        }
        if entry.queued >= Some(priority) {
            return;
        }
        if let Some(until) = entry.pause.filter(|until| *until > Instant::now()) {
            return self.set_timer(&key, until);
        }
        // A key that moves from bulk to live leaves a stale place in the bulk lane, which `take` skips.
        let is_new = entry.queued.replace(priority).is_none();
        entry.asked.get_or_insert_with(Instant::now);
        let lane = self.lanes.entry(key.plugin.clone()).or_default();
        lane.tally.adds += u64::from(is_new);
        if lane.is_empty() && !self.turns.contains(&key.plugin) {
            self.turns.push_back(key.plugin.clone());
        }
        match priority {
            Priority::Live => lane.live.push_back(key),
            Priority::Bulk => lane.bulk.push_back(key),
        }
    }

    /// Asks for a key for which no pause counts.
    pub(super) fn add_urgent(&mut self, key: Key) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.pause = None;
        }
        self.add(key, Priority::Live);
    }

    /// The next key to work on, of the plugin whose turn it is among those that may work on another one.
    pub(super) fn take(&mut self, concurrency: usize) -> Option<Key> {
        for _ in 0..self.turns.len() {
            let plugin = self.turns.pop_front()?;
            let lane = self.lanes.get_mut(&plugin)?;
            let key = if lane.working < concurrency { lane.pop(&self.entries) } else { None };
            if !lane.is_empty() {
                self.turns.push_back(plugin);
            }
            let Some(key) = key else { continue };
            lane.working += 1;
            let entry = self.entries.entry(key.clone()).or_default();
            (entry.queued, entry.working, entry.timer) = (None, true, None);
            let now = Instant::now();
            lane.tally.waited.count(entry.asked.take(), now);
            entry.began = Some(now);
            return Some(key);
        }
        None
    }

    /// Takes a key back that was worked on.
    pub(super) fn done(&mut self, key: &Key, next: Next, pause: Option<Duration>, now: Instant) {
        let Some(entry) = self.entries.get_mut(key) else { return };
        entry.working = false;
        if let Some(lane) = self.lanes.get_mut(&key.plugin) {
            lane.working = lane.working.saturating_sub(1);
            lane.tally.worked.count(entry.began.take(), now);
            lane.tally.retries += u64::from(matches!(next, Next::After(_) | Next::Backoff(_)));
        }
        let mut again = entry.again.take();
        entry.failures = if matches!(next, Next::Backoff(_)) { entry.failures.saturating_add(1) } else { 0 };
        let failures = entry.failures;
        entry.pause = pause.map(|pause| now + pause);
        match next {
            Next::Backoff(first) => self.set_timer(key, now + backoff(first, failures, fastrand::f64())),
            _ if pause.is_some() => again = again.max(Some(Priority::Live)),
            Next::Rest | Next::GiveUp => {}
            Next::Again => again = again.max(Some(Priority::Live)),
            Next::After(delay) => self.set_timer(key, now + delay),
        }
        match again {
            Some(priority) => self.add(key.clone(), priority),
            None => self.tidy(key),
        }
    }

    fn set_timer(&mut self, key: &Key, at: Instant) {
        let before = self.entries.entry(key.clone()).or_default().timer.replace(at);
        if before != Some(at) {
            self.timers.push(Reverse((at, key.clone())));
        }
    }

    /// When the first timer fires.
    pub(super) fn next_timer(&self) -> Option<Instant> {
        self.timers.peek().map(|Reverse((at, _))| *at)
    }

    /// Asks for all keys whose time has come.
    pub(super) fn fire_timers(&mut self, now: Instant) {
        while let Some(Reverse((at, _))) = self.timers.peek()
            && *at <= now
            && let Some(Reverse((at, key))) = self.timers.pop()
        {
            // A timer that was replaced or whose key was forgotten no longer counts.
            let current = self.entries.get_mut(&key).filter(|entry| entry.timer == Some(at));
            if let Some(entry) = current {
                entry.timer = None;
                self.add(key, Priority::Live);
            }
        }
    }

    /// Forgets a plugin's waiting keys, timers and failures.
    pub(super) fn forget_plugin(&mut self, plugin: &str) {
        if let Some(lane) = self.lanes.get_mut(plugin) {
            lane.clear();
        }
        self.entries.retain(|key, entry| {
            if &*key.plugin != plugin {
                return true;
            }
            (entry.queued, entry.again, entry.timer, entry.pause, entry.failures) = Default::default();
            entry.asked = None;
            entry.working
        });
    }

    /// How many failures in a row a key has.
    pub(super) fn failures(&self, key: &Key) -> u32 {
        self.entries.get(key).map_or(0, |entry| entry.failures)
    }

    /// What happened to each plugin's keys, and how it is with them now.
    pub(super) fn tallies(&self, now: Instant) -> BTreeMap<Arc<str>, (Tally, Load)> {
        let lanes = self.lanes.iter().map(|(plugin, lane)| (plugin.clone(), (lane.tally.clone(), Load::default())));
        let mut tallies: BTreeMap<_, _> = lanes.collect();
        for (key, entry) in &self.entries {
            let Some((_, load)) = tallies.get_mut(&key.plugin) else { continue };
            load.live += usize::from(entry.queued == Some(Priority::Live));
            load.bulk += usize::from(entry.queued == Some(Priority::Bulk));
            if let Some(began) = entry.began {
                load.work(began, now);
            }
        }
        tallies
    }

    fn tidy(&mut self, key: &Key) {
        let idle = self.entries.get(key).is_some_and(|entry| entry.failures == 0 && entry.timer.is_none());
        if idle {
            self.entries.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{cache::Name, queue::BACKOFF_FIRST};

    fn key(plugin: &str, name: &str) -> Key {
        Key { plugin: plugin.into(), object: Name::new("ns", name) }
    }

    fn take(state: &mut State) -> Option<String> {
        state.take(2).map(|key| key.object.name.to_string())
    }

    #[test]
    fn a_key_waits_once_and_is_worked_on_once() {
        let (mut state, a) = (State::default(), key("p", "a"));
        state.add(a.clone(), Priority::Live);
        state.add(a.clone(), Priority::Live);
        assert_eq!(take(&mut state).as_deref(), Some("a"));
        assert_eq!(take(&mut state), None);
        state.add(a.clone(), Priority::Live);
        assert_eq!(take(&mut state), None, "not again while it is worked on");
        state.done(&a, Next::Rest, None, Instant::now());
        assert_eq!(take(&mut state).as_deref(), Some("a"), "but right afterwards");
        state.done(&a, Next::Rest, None, Instant::now());
        assert_eq!(take(&mut state), None);
        assert!(state.entries.is_empty(), "nothing is remembered of a key at rest");
    }

    #[test]
    fn live_changes_go_before_bulk_work_and_take_their_own_key_along() {
        let mut state = State::default();
        for name in ["a", "b", "c"] {
            state.add(key("p", name), Priority::Bulk);
        }
        state.add(key("p", "c"), Priority::Live);
        assert_eq!(take(&mut state).as_deref(), Some("c"));
        assert_eq!(take(&mut state).as_deref(), Some("a"));
        state.done(&key("p", "c"), Next::Rest, None, Instant::now());
        assert_eq!(take(&mut state).as_deref(), Some("b"));
        state.done(&key("p", "a"), Next::Rest, None, Instant::now());
        assert_eq!(take(&mut state), None, "c's place in the bulk lane is stale");
    }

    /// As after a restart in the middle of it all.
    #[test]
    fn bulk_work_has_a_turn_also_while_changes_go_on_coming() {
        let mut state = State::default();
        for name in ["a", "b"] {
            state.add(key("p", name), Priority::Bulk);
        }
        let mut taken = Vec::new();
        for change in 0..10 {
            state.add(key("p", &format!("change-{change}")), Priority::Live);
            let next = state.take(1);
            taken.extend(next.as_ref().map(|key| key.object.name.to_string()));
            next.iter().for_each(|key| state.done(key, Next::Rest, None, Instant::now()));
        }
        let turns: Vec<_> = taken.iter().map(|name| if name.starts_with("change") { '.' } else { '#' }).collect();
        assert_eq!(turns.iter().collect::<String>(), "...#...#..", "{taken:?}");
    }

    /// Whichever of two plugins comes late, and whatever has a place: its key is among the next ones that are let out.
    #[test]
    fn plugins_take_turns_and_none_exceeds_its_concurrency() {
        for priority in [Priority::Live, Priority::Bulk] {
            let mut state = State::default();
            for name in 0..5_000 {
                state.add(key("busy", &format!("busy-{name}")), priority);
            }
            assert!(take(&mut state).is_some_and(|name| name.starts_with("busy")));
            state.add(key("quiet", "quiet"), Priority::Live);
            let next: Vec<_> = (0..2).filter_map(|_| take(&mut state)).collect();
            assert!(next.contains(&"quiet".to_owned()), "{next:?}");
            assert_eq!(take(&mut state), None, "the busy plugin has its two");
            state.add(key("quiet", "another"), Priority::Live);
            assert_eq!(take(&mut state).as_deref(), Some("another"), "whatever the busy one waits for");
        }
    }

    /// As the host takes them: as soon as one is done, the next.
    #[test]
    fn five_thousand_waiting_keys_delay_others_by_no_more_than_a_few() {
        let mut state = State::default();
        for name in 0..5_000 {
            state.add(key("busy", &format!("busy-{name}")), Priority::Live);
        }
        let mut working: VecDeque<_> = (0..2).filter_map(|_| state.take(2)).collect();
        for name in 0..100 {
            state.add(key("quiet", &format!("quiet-{name}")), Priority::Live);
            let mut before = 0;
            loop {
                let taken = state.take(2);
                before += usize::from(taken.as_ref().is_some_and(|key| &*key.plugin == "busy"));
                let quiet = taken.as_ref().is_some_and(|key| &*key.plugin == "quiet");
                working.extend(taken);
                if let Some(done) = working.pop_front() {
                    state.done(&done, Next::Rest, None, Instant::now());
                }
                if quiet {
                    break;
                }
            }
            assert!(before <= 2, "{before} keys went before the only one of another plugin");
        }
    }

    #[test]
    fn timers_fire_once_and_only_the_latest_counts() {
        let (mut state, a, now) = (State::default(), key("p", "a"), Instant::now());
        state.add(a.clone(), Priority::Live);
        assert!(take(&mut state).is_some());
        state.done(&a, Next::After(Duration::from_secs(30)), None, now);
        state.fire_timers(now + Duration::from_secs(29));
        assert_eq!(take(&mut state), None);
        state.add(a.clone(), Priority::Live);
        assert!(take(&mut state).is_some());
        state.done(&a, Next::After(Duration::from_secs(60)), None, now);
        state.fire_timers(now + Duration::from_secs(31));
        assert_eq!(take(&mut state), None, "the first timer was replaced");
        state.fire_timers(now + Duration::from_secs(60));
        assert!(take(&mut state).is_some());
    }

    #[test]
    fn keys_are_counted_as_they_come_wait_and_are_worked_on() {
        let (mut state, a, now) = (State::default(), key("p", "a"), Instant::now());
        let of = |state: &State| state.tallies(now + Duration::from_secs(9)).remove("p").unwrap_or_default();
        for priority in [Priority::Bulk, Priority::Live, Priority::Live] {
            state.add(a.clone(), priority);
        }
        state.add(key("p", "b"), Priority::Bulk);
        let (tally, load) = of(&state);
        assert_eq!((tally.adds, load.live, load.bulk), (2, 1, 1), "asking twice is asking once");

        assert!(take(&mut state).is_some());
        state.add(a.clone(), Priority::Live);
        let (tally, load) = of(&state);
        assert_eq!((tally.adds, tally.waited.counts.iter().sum::<u64>(), load.live), (2, 1, 0));
        assert!(load.longest > Duration::from_secs(8) && load.unfinished == load.longest, "{load:?}");

        state.done(&a, Next::Backoff(BACKOFF_FIRST), None, now);
        let (tally, load) = of(&state);
        assert_eq!((tally.adds, tally.retries, tally.worked.counts.iter().sum::<u64>()), (3, 1, 1));
        assert_eq!((load.live, load.unfinished), (1, Duration::ZERO), "what asked meanwhile waits");
    }

    #[test]
    fn a_pause_holds_a_key_back_and_loses_nothing() {
        let (mut state, a, now) = (State::default(), key("p", "a"), Instant::now());
        state.add(a.clone(), Priority::Live);
        assert!(take(&mut state).is_some());
        state.done(&a, Next::Rest, Some(Duration::from_secs(60)), now);
        for _ in 0..1_000 {
            state.add(a.clone(), Priority::Live);
        }
        assert_eq!(state.timers.len(), 1, "whoever asks waits for the same timer");
        state.fire_timers(now + Duration::from_secs(1));
        assert_eq!(take(&mut state), None, "it pauses");
        assert!(state.entries.get(&a).is_some_and(|entry| entry.timer.is_some()), "and comes by itself");
        if let Some(entry) = state.entries.get_mut(&a) {
            entry.pause = Some(now);
        }
        state.fire_timers(now + Duration::from_secs(60));
        assert!(take(&mut state).is_some());
        state.done(&a, Next::Rest, None, now);
        assert!(state.entries.is_empty());
    }

    #[test]
    fn success_resets_the_backoff() {
        let (mut state, a, now) = (State::default(), key("p", "a"), Instant::now());
        for (next, failures) in [(Next::Backoff(BACKOFF_FIRST), 1), (Next::Backoff(BACKOFF_FIRST), 2), (Next::Rest, 0)]
        {
            state.add(a.clone(), Priority::Live);
            assert!(take(&mut state).is_some());
            state.done(&a, next, None, now);
            assert_eq!(state.entries.get(&a).map_or(0, |entry| entry.failures), failures);
        }
    }
}
