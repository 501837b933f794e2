//! The state of the queue: which keys wait, which are being reconciled, which timers run. Knows no lock and never waits; the
//! caller passes the time where it matters.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use tokio::time::Instant;

use super::{
    Action, Key, Priority, QueueLoad, QueueSnapshot,
    backoff::backoff,
    key_state::KeyState,
    plugin_queue::{MUCH_ROOM, PluginQueue},
};

/// How the reconcile of a key ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Done {
    /// What happens to the key next.
    pub(super) action: Action,
    /// How long the key pauses before its next reconcile.
    pub(super) pause: Option<Duration>,
    /// A random number from 0 to 1 that spreads the retries of keys that failed together.
    pub(super) jitter: f64,
}

/// All keys of all plugins.
#[derive(Debug, Default)]
pub(super) struct QueueState {
    /// Holds a key only while there is something to remember about it.
    key_states: HashMap<Key, KeyState>,
    plugins: HashMap<Arc<str>, PluginQueue>,
    /// Plugins with waiting keys, in the order of their turns.
    round_robin: VecDeque<Arc<str>>,
    /// At most one timer per key, ordered by time.
    timers: BTreeSet<(Instant, Key)>,
    pub(super) closed: bool,
}

impl QueueState {
    /// Includes a plugin in the statistics from now on. It reconciles so many keys at once; none for what the queue says.
    pub(super) fn open(&mut self, plugin: &str, concurrency: Option<usize>) {
        let queue = self.plugins.entry(plugin.into()).or_default();
        (queue.is_open, queue.concurrency) = (true, concurrency);
    }

    /// Adds a key, or raises the priority of a key that waits already.
    pub(super) fn add(&mut self, key: Key, priority: Priority) {
        let key_state = self.key_states.entry(key.clone()).or_default();
        if key_state.processing {
            key_state.requeue = key_state.requeue.max(Some(priority));
            key_state.waiting_since.get_or_insert_with(Instant::now);
            return;
        }
        // `None` is less than any `Some`, so a key that does not wait passes.
        if key_state.queued >= Some(priority) {
            return;
        }
        if let Some(until) = key_state.paused_until.filter(|until| *until > Instant::now()) {
            // The key waits as a timer and not in the queue, so `take` has nothing to skip. Adding it again only replaces the
            // timer.
            return self.set_timer(&key, until);
        }
        // A key that moves from bulk to live leaves a stale entry in the bulk queue, which `PluginQueue::pop` skips.
        let is_new = key_state.queued.replace(priority).is_none();
        key_state.waiting_since.get_or_insert_with(Instant::now);
        let queue = self.plugins.entry(key.plugin.clone()).or_default();
        queue.stats.adds += u64::from(is_new);
        if queue.is_empty() && !self.round_robin.contains(&key.plugin) {
            self.round_robin.push_back(key.plugin.clone());
        }
        match priority {
            Priority::Live => queue.live.push_back(key),
            Priority::Bulk => queue.bulk.push_back(key),
        }
    }

    /// Adds a key and ends its pause.
    pub(super) fn add_urgent(&mut self, key: Key) {
        if let Some(key_state) = self.key_states.get_mut(&key) {
            key_state.paused_until = None;
        }
        self.add(key, Priority::Live);
    }

    /// The next key to reconcile: from the plugin whose turn it is, among those below their concurrency.
    pub(super) fn take(&mut self, concurrency: usize) -> Option<Key> {
        for _ in 0..self.round_robin.len() {
            let plugin = self.round_robin.pop_front()?;
            let queue = self.plugins.get_mut(&plugin)?;
            let concurrency = queue.concurrency.unwrap_or(concurrency).max(1);
            let key = if queue.processing < concurrency { queue.pop(&self.key_states) } else { None };
            if !queue.is_empty() {
                self.round_robin.push_back(plugin);
            }
            let Some(key) = key else { continue };
            queue.processing += 1;
            let key_state = self.key_states.entry(key.clone()).or_default();
            // The reconcile that starts now does what the timer was set for.
            let timer = key_state.timer.take();
            (key_state.queued, key_state.processing) = (None, true);
            let now = Instant::now();
            queue.stats.waited.observe(key_state.waiting_since.take(), now);
            key_state.processing_since = Some(now);
            self.drop_timer(&key, timer);
            return Some(key);
        }
        None
    }

    /// Takes back a key after its reconcile.
    pub(super) fn done(&mut self, key: &Key, done: Done, now: Instant) {
        let Some(key_state) = self.key_states.get_mut(key) else { return };
        key_state.processing = false;
        // Its plugin went meanwhile. What the reconcile asked for counts no more, only what came since.
        let Done { action, pause, jitter } = match std::mem::take(&mut key_state.forgotten) {
            true => Done { action: Action::AwaitChange, pause: None, jitter: done.jitter },
            false => done,
        };
        if let Some(queue) = self.plugins.get_mut(&key.plugin) {
            queue.processing = queue.processing.saturating_sub(1);
            queue.stats.worked.observe(key_state.processing_since.take(), now);
            queue.stats.retries += u64::from(action.is_retry() || matches!(action, Action::RequeueAfter(_)));
        }
        let mut requeue = key_state.requeue.take();
        key_state.failures = if action.is_retry() { key_state.failures.saturating_add(1) } else { 0 };
        let failures = key_state.failures;
        key_state.paused_until = pause.map(|pause| now + pause);
        match action {
            Action::Backoff(first) => self.set_timer(key, now + backoff(first, failures, jitter)),
            Action::BackoffUntil { first, at_most } => {
                self.set_timer(key, now + backoff(first, failures, jitter).min(at_most));
            }
            // A paused key is added again in any case: the event that the pause delays does not come a second time.
            _ if pause.is_some() => requeue = requeue.max(Some(Priority::Live)),
            Action::AwaitChange | Action::Terminal => {}
            Action::Requeue => requeue = requeue.max(Some(Priority::Live)),
            Action::RequeueAfter(delay) => self.set_timer(key, now + delay),
        }
        match requeue {
            Some(priority) => self.add(key.clone(), priority),
            None => self.drop_idle(key),
        }
    }

    fn set_timer(&mut self, key: &Key, at: Instant) {
        let before = self.key_states.entry(key.clone()).or_default().timer.replace(at);
        self.drop_timer(key, before);
        self.timers.insert((at, key.clone()));
    }

    fn drop_timer(&mut self, key: &Key, timer: Option<Instant>) {
        if let Some(at) = timer {
            self.timers.remove(&(at, key.clone()));
        }
    }

    /// When the next timer fires.
    pub(super) fn next_timer(&self) -> Option<Instant> {
        self.timers.first().map(|(at, _)| *at)
    }

    /// Adds all keys whose timer has fired.
    pub(super) fn fire_timers(&mut self, now: Instant) {
        while self.next_timer().is_some_and(|at| at <= now)
            && let Some((_, key)) = self.timers.pop_first()
        {
            if let Some(state) = self.key_states.get_mut(&key) {
                state.timer = None;
                self.add(key, Priority::Live);
            }
        }
    }

    /// Forgets a plugin's waiting keys, timers and failures.
    pub(super) fn forget_plugin(&mut self, plugin: &str) {
        if let Some(queue) = self.plugins.get_mut(plugin) {
            queue.close();
            if queue.processing == 0 {
                self.plugins.remove(plugin);
            }
        }
        self.round_robin.retain(|other| &**other != plugin);
        self.timers.retain(|(_, key)| &*key.plugin != plugin);
        self.key_states.retain(|key, key_state| {
            if &*key.plugin != plugin {
                return true;
            }
            (key_state.queued, key_state.requeue, key_state.timer, key_state.paused_until, key_state.failures) =
                Default::default();
            key_state.waiting_since = None;
            key_state.forgotten = key_state.processing;
            // A key in progress stays, because `done` has to find it.
            key_state.processing
        });
    }

    /// Whether a plugin's keys are being reconciled.
    pub(super) fn is_working(&self, plugin: &str) -> bool {
        self.plugins.get(plugin).is_some_and(|queue| queue.processing > 0)
    }

    /// The number of a key's failures in a row.
    pub(super) fn failures(&self, key: &Key) -> u32 {
        self.key_states.get(key).map_or(0, |key_state| key_state.failures)
    }

    /// The number of keys about which there is something to remember.
    pub(super) fn remembered_keys(&self) -> usize {
        self.key_states.len()
    }

    /// The numbers of each plugin at work.
    pub(super) fn stats(&self, now: Instant) -> BTreeMap<Arc<str>, QueueSnapshot> {
        let snapshot = |queue: &PluginQueue| QueueSnapshot { stats: queue.stats.clone(), load: QueueLoad::default() };
        let open = self.plugins.iter().filter(|(_, queue)| queue.is_open);
        let mut stats: BTreeMap<_, _> = open.map(|(plugin, queue)| (plugin.clone(), snapshot(queue))).collect();
        for (key, key_state) in &self.key_states {
            let Some(QueueSnapshot { load, .. }) = stats.get_mut(&key.plugin) else { continue };
            load.live += usize::from(key_state.queued == Some(Priority::Live));
            load.bulk += usize::from(key_state.queued == Some(Priority::Bulk));
            if let Some(since) = key_state.processing_since {
                load.count_processing(since, now);
            }
        }
        stats
    }

    /// Drops the state of a key with nothing left to remember.
    fn drop_idle(&mut self, key: &Key) {
        let idle =
            self.key_states.get(key).is_some_and(|key_state| key_state.failures == 0 && key_state.timer.is_none());
        if idle {
            self.key_states.remove(key);
            self.give_back_room();
        }
    }

    /// Gives memory back after a burst: all objects may have been here at once, and at rest hardly any is.
    fn give_back_room(&mut self) {
        let (room, used) = (self.key_states.capacity(), self.key_states.len());
        if room >= MUCH_ROOM && used.saturating_mul(8) < room {
            self.key_states.shrink_to(used.saturating_mul(2).max(MUCH_ROOM / 8));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{object::ObjectRef, queue::BACKOFF_FIRST};

    fn done(action: Action) -> Done {
        Done { action, pause: None, jitter: 0.5 }
    }

    fn key(plugin: &str, name: &str) -> Key {
        Key { plugin: plugin.into(), object: ObjectRef::new("ns", name) }
    }

    fn take(state: &mut QueueState) -> Option<String> {
        state.take(2).map(|key| key.object.name.to_string())
    }

    #[test]
    fn a_key_waits_once_and_is_worked_on_once() {
        let (mut state, a) = (QueueState::default(), key("p", "a"));
        state.add(a.clone(), Priority::Live);
        state.add(a.clone(), Priority::Live);
        assert_eq!(take(&mut state).as_deref(), Some("a"));
        assert_eq!(take(&mut state), None);
        state.add(a.clone(), Priority::Live);
        assert_eq!(take(&mut state), None, "not again while it is worked on");
        state.done(&a, done(Action::AwaitChange), Instant::now());
        assert_eq!(take(&mut state).as_deref(), Some("a"), "but right afterwards");
        state.done(&a, done(Action::AwaitChange), Instant::now());
        assert_eq!(take(&mut state), None);
        assert!(state.key_states.is_empty(), "nothing is remembered of a key at rest");
    }

    #[test]
    fn live_changes_go_before_bulk_work_and_take_their_own_key_along() {
        let mut state = QueueState::default();
        for name in ["a", "b", "c"] {
            state.add(key("p", name), Priority::Bulk);
        }
        state.add(key("p", "c"), Priority::Live);
        assert_eq!(take(&mut state).as_deref(), Some("c"));
        assert_eq!(take(&mut state).as_deref(), Some("a"));
        state.done(&key("p", "c"), done(Action::AwaitChange), Instant::now());
        assert_eq!(take(&mut state).as_deref(), Some("b"));
        state.done(&key("p", "a"), done(Action::AwaitChange), Instant::now());
        assert_eq!(take(&mut state), None, "c's place in the bulk queue is stale");
    }

    /// As after a restart during constant changes.
    #[test]
    fn bulk_work_has_a_turn_also_while_changes_go_on_coming() {
        let mut state = QueueState::default();
        for name in ["a", "b"] {
            state.add(key("p", name), Priority::Bulk);
        }
        let mut taken = Vec::new();
        for change in 0..10 {
            state.add(key("p", &format!("change-{change}")), Priority::Live);
            let next = state.take(1);
            taken.extend(next.as_ref().map(|key| key.object.name.to_string()));
            next.iter().for_each(|key| state.done(key, done(Action::AwaitChange), Instant::now()));
        }
        let turns: Vec<_> = taken.iter().map(|name| if name.starts_with("change") { '.' } else { '#' }).collect();
        assert_eq!(turns.iter().collect::<String>(), "...#...#..", "{taken:?}");
    }

    /// A key of a plugin without running work is among the next two keys, however many keys of another plugin wait.
    #[test]
    fn plugins_take_turns_and_none_exceeds_its_concurrency() {
        for priority in [Priority::Live, Priority::Bulk] {
            let mut state = QueueState::default();
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

    /// Takes keys as the host does: the next one as soon as one is done.
    #[test]
    fn five_thousand_waiting_keys_delay_others_by_no_more_than_a_few() {
        let mut state = QueueState::default();
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
                if let Some(taken) = working.pop_front() {
                    state.done(&taken, done(Action::AwaitChange), Instant::now());
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
        let (mut state, a, now) = (QueueState::default(), key("p", "a"), Instant::now());
        state.add(a.clone(), Priority::Live);
        assert!(take(&mut state).is_some());
        state.done(&a, done(Action::RequeueAfter(Duration::from_secs(30))), now);
        state.fire_timers(now + Duration::from_secs(29));
        assert_eq!(take(&mut state), None);
        state.add(a.clone(), Priority::Live);
        assert!(take(&mut state).is_some());
        state.done(&a, done(Action::RequeueAfter(Duration::from_secs(60))), now);
        state.fire_timers(now + Duration::from_secs(31));
        assert_eq!(take(&mut state), None, "the first timer was replaced");
        assert_eq!(state.timers.len(), 1, "and takes no memory");
        state.fire_timers(now + Duration::from_secs(60));
        assert!(take(&mut state).is_some());
    }

    #[test]
    fn a_reconcile_that_ends_after_its_plugin_went_sets_no_timer() {
        let (mut state, a, now) = (QueueState::default(), key("p", "a"), Instant::now());
        state.add(a.clone(), Priority::Live);
        assert!(take(&mut state).is_some());
        state.forget_plugin("p");
        assert!(state.is_working("p"), "it goes on");
        state.done(&a, done(Action::RequeueAfter(Duration::from_secs(600))), now);
        assert!(!state.is_working("p"));
        assert_eq!((state.remembered_keys(), state.timers.len()), (0, 0));
        // What comes after the plugin is back counts.
        state.add(a.clone(), Priority::Live);
        assert!(take(&mut state).is_some());
        state.done(&a, done(Action::RequeueAfter(Duration::from_secs(600))), now);
        assert_eq!(state.timers.len(), 1);
    }

    #[test]
    fn keys_are_counted_as_they_come_wait_and_are_worked_on() {
        let (mut state, a, now) = (QueueState::default(), key("p", "a"), Instant::now());
        let of = |state: &QueueState| state.stats(now + Duration::from_secs(9)).remove("p").unwrap_or_default();
        state.open("p", None);
        for priority in [Priority::Bulk, Priority::Live, Priority::Live] {
            state.add(a.clone(), priority);
        }
        state.add(key("p", "b"), Priority::Bulk);
        let QueueSnapshot { stats, load } = of(&state);
        assert_eq!((stats.adds, load.live, load.bulk), (2, 1, 1), "asking twice is asking once");

        assert!(take(&mut state).is_some());
        state.add(a.clone(), Priority::Live);
        let QueueSnapshot { stats, load } = of(&state);
        assert_eq!((stats.adds, stats.waited.counts.iter().sum::<u64>(), load.live), (2, 1, 0));
        assert!(load.longest > Duration::from_secs(8) && load.unfinished == load.longest, "{load:?}");

        state.done(&a, done(Action::Backoff(BACKOFF_FIRST)), now);
        let QueueSnapshot { stats, load } = of(&state);
        assert_eq!((stats.adds, stats.retries, stats.worked.counts.iter().sum::<u64>()), (3, 1, 1));
        assert_eq!((load.live, load.unfinished), (1, Duration::ZERO), "what asked meanwhile waits");
    }

    #[test]
    fn a_pause_holds_a_key_back_and_loses_nothing() {
        let (mut state, a, now) = (QueueState::default(), key("p", "a"), Instant::now());
        state.add(a.clone(), Priority::Live);
        assert!(take(&mut state).is_some());
        state.done(&a, Done { pause: Some(Duration::from_secs(60)), ..done(Action::AwaitChange) }, now);
        for _ in 0..1_000 {
            state.add(a.clone(), Priority::Live);
        }
        assert_eq!(state.timers.len(), 1, "whoever asks waits for the same timer");
        state.fire_timers(now + Duration::from_secs(1));
        assert_eq!(take(&mut state), None, "it pauses");
        assert!(state.key_states.get(&a).is_some_and(|key_state| key_state.timer.is_some()), "and comes by itself");
        if let Some(key_state) = state.key_states.get_mut(&a) {
            key_state.paused_until = Some(now);
        }
        state.fire_timers(now + Duration::from_secs(60));
        assert!(take(&mut state).is_some());
        state.done(&a, done(Action::AwaitChange), now);
        assert!(state.key_states.is_empty());
    }

    #[test]
    fn a_backoff_is_no_longer_than_its_plugin_asked_for() {
        let (mut state, a, now) = (QueueState::default(), key("p", "a"), Instant::now());
        let [second, five] = [1, 5].map(Duration::from_secs);
        let mut delays = Vec::new();
        for _ in 0..10 {
            state.add(a.clone(), Priority::Live);
            assert!(take(&mut state).is_some());
            state.done(&a, done(Action::BackoffUntil { first: second, at_most: five }), now);
            delays.extend(state.next_timer().map(|at| at - now));
        }
        assert!(delays.iter().is_sorted() && delays.iter().all(|delay| *delay <= five), "{delays:?}");
        assert!(delays.first().is_some_and(|delay| *delay < 2 * second), "{delays:?}");
        assert_eq!(delays.last(), Some(&five));
    }

    #[test]
    fn success_resets_the_backoff() {
        let (mut state, a, now) = (QueueState::default(), key("p", "a"), Instant::now());
        for (next, failures) in
            [(Action::Backoff(BACKOFF_FIRST), 1), (Action::Backoff(BACKOFF_FIRST), 2), (Action::AwaitChange, 0)]
        {
            state.add(a.clone(), Priority::Live);
            assert!(take(&mut state).is_some());
            state.done(&a, done(next), now);
            assert_eq!(state.key_states.get(&a).map_or(0, |key_state| key_state.failures), failures);
        }
    }
}
