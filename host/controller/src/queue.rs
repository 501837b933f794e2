//! The queue of objects to reconcile: each at most once, never twice at a time, plugins in turn, live changes before
//! bulk work, timers and backoff. Knows keys only, not what is done with them.

mod tally;

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BinaryHeap, HashMap, VecDeque},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::Notify;

pub use self::tally::{BOUNDS, Durations, Load, Tally};
use crate::cache::Name;

/// Delay of the first retry of a passing fault, and the longest delay (client-go's default rate limiter).
pub const BACKOFF_FIRST: Duration = Duration::from_millis(5);
const BACKOFF_LONGEST: Duration = Duration::from_secs(1000);

/// An object of a plugin.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    /// The plugin's name.
    pub plugin: Arc<str>,
    /// The object's namespace and name.
    pub object: Name,
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.plugin, self.object)
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// What goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Priority {
    /// Start-up, swaps, resync: many at once, nobody waits for one of them.
    Bulk,
    /// Somebody changed something.
    Live,
}

/// What becomes of a key after it was worked on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing until something changes.
    Rest,
    /// Nothing until something changes, for the object cannot be satisfied as it is.
    GiveUp,
    /// Again at once, for the work itself made a change.
    Again,
    /// Again after this time at the latest; not a failure.
    After(Duration),
    /// Again after a delay that begins with this time and doubles with every failure in a row.
    Backoff(Duration),
}

/// The queue. One task takes from it; any number put into it.
#[derive(Debug)]
pub struct Queue {
    state: Mutex<State>,
    wake: Notify,
    concurrency: usize,
}

#[derive(Debug, Default)]
struct State {
    entries: HashMap<Key, Entry>,
    lanes: HashMap<Arc<str>, Lane>,
    /// Plugins with waiting keys, in turn.
    turns: VecDeque<Arc<str>>,
    timers: BinaryHeap<Reverse<(Instant, Key)>>,
    closed: bool,
}

/// One key's state. There is an entry only while there is something to remember.
#[derive(Debug, Default)]
struct Entry {
    queued: Option<Priority>,
    working: bool,
    /// Asked for again while it was worked on.
    again: Option<Priority>,
    failures: u32,
    timer: Option<Instant>,
    /// Not worked on before this.
    pause: Option<Instant>,
    /// Since when it waits, or somebody asks for it.
    asked: Option<Instant>,
    /// Since when it is worked on.
    began: Option<Instant>,
}

/// One plugin's waiting keys.
#[derive(Debug, Default)]
struct Lane {
    live: VecDeque<Key>,
    bulk: VecDeque<Key>,
    working: usize,
    tally: Tally,
}

impl Queue {
    /// A queue that lets each plugin work on `concurrency` objects at once.
    pub fn new(concurrency: usize) -> Self {
        Self { state: Mutex::default(), wake: Notify::new(), concurrency: concurrency.max(1) }
    }

    /// Counts a plugin's keys from now on, also while there are none.
    pub fn open(&self, plugin: &str) {
        self.lock().lanes.entry(plugin.into()).or_default();
    }

    /// Asks for a key. Asking twice is asking once.
    pub fn add(&self, key: Key, priority: Priority) {
        self.lock().add(key, priority);
        self.wake.notify_one();
    }

    /// Asks for a key for which no pause counts: somebody changed the object itself.
    pub fn add_urgent(&self, key: Key) {
        let mut state = self.lock();
        if let Some(entry) = state.entries.get_mut(&key) {
            entry.pause = None;
        }
        state.add(key, Priority::Live);
        drop(state);
        self.wake.notify_one();
    }

    /// Asks for many keys as bulk work.
    pub fn add_all(&self, keys: impl IntoIterator<Item = Key>) {
        let mut state = self.lock();
        for key in keys {
            state.add(key, Priority::Bulk);
        }
        drop(state);
        self.wake.notify_one();
    }

    /// The next key to work on; waits for one. None once the queue is closed. Every key taken must be given back with
    /// [`Queue::done`].
    pub async fn next(&self) -> Option<Key> {
        loop {
            let timer = {
                let mut state = self.lock();
                if state.closed {
                    return None;
                }
                state.fire_timers(Instant::now());
                if let Some(key) = state.take(self.concurrency) {
                    return Some(key);
                }
                state.timers.peek().map(|Reverse((at, _))| *at)
            };
            match timer {
                Some(at) => tokio::select! {
                    () = tokio::time::sleep_until(at.into()) => {}
                    () = self.wake.notified() => {}
                },
                None => self.wake.notified().await,
            }
        }
    }

    /// Gives a key back. With a pause it is worked on again after that, not before: what asks for it meanwhile waits.
    pub fn done(&self, key: &Key, next: Next, pause: Option<Duration>) {
        self.lock().done(key, next, pause, Instant::now());
        self.wake.notify_one();
    }

    /// Forgets a plugin's waiting keys, timers and failures; what is being worked on goes on.
    pub fn forget_plugin(&self, plugin: &str) {
        let mut state = self.lock();
        if let Some(lane) = state.lanes.get_mut(plugin) {
            (lane.live, lane.bulk) = Default::default();
        }
        state.entries.retain(|key, entry| {
            if &*key.plugin != plugin {
                return true;
            }
            (entry.queued, entry.again, entry.timer, entry.pause, entry.failures) = Default::default();
            entry.asked = None;
            entry.working
        });
    }

    /// Lets no more keys out and ends [`Queue::next`].
    pub fn close(&self) {
        self.lock().closed = true;
        self.wake.notify_one();
    }

    /// How many failures in a row a key has.
    pub fn failures(&self, key: &Key) -> u32 {
        self.lock().entries.get(key).map_or(0, |entry| entry.failures)
    }

    /// What happened to each plugin's keys, and how it is with them now.
    pub fn tallies(&self) -> BTreeMap<Arc<str>, (Tally, Load)> {
        self.lock().tallies(Instant::now())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add(&mut self, key: Key, priority: Priority) {
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
        if lane.live.is_empty() && lane.bulk.is_empty() && !self.turns.contains(&key.plugin) {
            self.turns.push_back(key.plugin.clone());
        }
        match priority {
            Priority::Live => lane.live.push_back(key),
            Priority::Bulk => lane.bulk.push_back(key),
        }
    }

    fn take(&mut self, concurrency: usize) -> Option<Key> {
        for _ in 0..self.turns.len() {
            let plugin = self.turns.pop_front()?;
            let lane = self.lanes.get_mut(&plugin)?;
            let key = if lane.working < concurrency { lane.pop(&self.entries) } else { None };
            if !lane.live.is_empty() || !lane.bulk.is_empty() {
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

    fn done(&mut self, key: &Key, next: Next, pause: Option<Duration>, now: Instant) {
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
        self.entries.entry(key.clone()).or_default().timer = Some(at);
        self.timers.push(Reverse((at, key.clone())));
    }

    fn fire_timers(&mut self, now: Instant) {
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

    fn tallies(&self, now: Instant) -> BTreeMap<Arc<str>, (Tally, Load)> {
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

impl Lane {
    /// The first key that still waits at this place.
    fn pop(&mut self, entries: &HashMap<Key, Entry>) -> Option<Key> {
        let waits = |key: &Key, place: Priority| entries.get(key).is_some_and(|entry| entry.queued == Some(place));
        while let Some(key) = self.live.pop_front() {
            if waits(&key, Priority::Live) {
                return Some(key);
            }
        }
        while let Some(key) = self.bulk.pop_front() {
            if waits(&key, Priority::Bulk) {
                return Some(key);
            }
        }
        None
    }
}

/// The delay after so many failures in a row: doubling, with up to a tenth more or less so that objects that failed
/// together do not come back together. `chance` is from 0 to 1.
fn backoff(first: Duration, failures: u32, chance: f64) -> Duration {
    let doublings = failures.saturating_sub(1).min(31);
    let delay = first.saturating_mul(1 << doublings).min(BACKOFF_LONGEST);
    delay.mul_f64(0.9 + 0.2 * chance)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn plugins_take_turns_and_none_exceeds_its_concurrency() {
        let mut state = State::default();
        for name in 0..100 {
            state.add(key("busy", &format!("busy-{name}")), Priority::Live);
        }
        state.add(key("quiet", "quiet"), Priority::Live);
        let first: Vec<_> = (0..3).filter_map(|_| take(&mut state)).collect();
        assert!(first.contains(&"quiet".to_owned()), "{first:?}");
        assert_eq!(take(&mut state), None, "the busy plugin has its two");
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
        state.add(a.clone(), Priority::Live);
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
    fn backoff_doubles_from_5_ms_to_1000_s_and_success_resets_it() {
        for (failures, expected) in
            [(1, 5), (2, 10), (3, 20), (11, 5_120), (18, 655_360), (19, 1_000_000), (99, 1_000_000)]
        {
            assert_eq!(backoff(BACKOFF_FIRST, failures, 0.5), Duration::from_millis(expected), "{failures}");
        }
        assert!(
            backoff(BACKOFF_FIRST, 3, 0.0) >= Duration::from_millis(18)
                && backoff(BACKOFF_FIRST, 3, 1.0) <= Duration::from_millis(22)
        );
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
