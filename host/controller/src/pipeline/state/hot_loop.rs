//! The guard against hot loops. Throttles an object that is reconciled again and again, because another controller fights over
//! its children or because its plugin does not converge, and names the most frequent source of its events.
//!
//! A token bucket per object counts calls. An object above the limit pauses between reconciles, with growing pauses. No event is
//! lost: a throttled object is still reconciled after its last event.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{
    pipeline::conditions::StatusReason,
    queue::{Action, Key},
};

/// The number of calls at once above which an object is throttled.
const MAX_BURST: f64 = 60.0;
/// The same for each child, where that is more: a Pod is scheduled, started and ready, and a rollout of many is no loop.
const MAX_BURST_PER_CHILD: f64 = 3.0;
/// The rate of calls that an object may keep up for ever.
const CALLS_PER_SECOND: f64 = 1.0;

/// The first pauses of a throttled object. From the fifth on they double.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(16);

/// The pauses in a row before the condition `Throttled` is set. A rollout of many Pods has a few as well, but is soon over.
const PAUSES_BEFORE_REPORT: u32 = 5;

/// The number of event sources that are counted for one object. A new one replaces the least frequent.
const MAX_SOURCES: usize = 8;

/// The number of objects from which on those without recent calls are dropped, each time that there are twice as many as were left.
const MANY_OBJECTS: usize = 256;

/// The source that counts if the plugin itself asks for an immediate requeue.
const REQUEUE_SOURCE: &str = "the plugin's own requeue-after";

/// Whether a call ended an object's throttling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Throttling {
    /// The object was throttled until this call.
    Ended,
    /// The object was not throttled, or it still is.
    Inactive,
}

/// The calls and events of all objects.
#[derive(Debug, Default)]
pub struct HotLoops(Mutex<Counted>);

#[derive(Debug, Default)]
struct Counted {
    loops: HashMap<Key, HotLoop>,
    /// How many were left when those without recent calls were dropped last.
    left: usize,
}

#[derive(Debug)]
struct HotLoop {
    /// Calls above the sustained rate, as of `at`.
    level: f64,
    /// The time of the last update of `level`.
    at: Instant,
    generation: i64,
    /// The level above which it is throttled.
    burst: f64,
    /// Events since the start of the last reconcile.
    events_since_start: u32,
    is_reconciling: bool,
    /// Pauses in a row.
    pauses: u32,
    /// Answers in a row that differed although the object was unchanged.
    changed_answers: u32,
    sources: Vec<EventSource>,
}

/// What an event of an object is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventOrigin {
    /// The object itself or one of its children. The host writes both, so the event may be the echo of that.
    Own,
    /// An object that the plugin looked up, which is somebody else's.
    Lookup,
}

/// A source of events, such as a child, and the sum of their weights.
#[derive(Debug)]
struct EventSource {
    name: String,
    origin: EventOrigin,
    weight: u32,
}

impl HotLoop {
    fn new(now: Instant) -> Self {
        Self {
            level: 0.0,
            at: now,
            generation: 0,
            burst: MAX_BURST,
            events_since_start: 0,
            is_reconciling: false,
            pauses: 0,
            changed_answers: 0,
            sources: Vec::new(),
        }
    }

    fn cool(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.at).as_secs_f64();
        (self.level, self.at) = ((self.level - elapsed * CALLS_PER_SECOND).max(0.0), now);
    }

    /// Ends the pauses, if there are any. Half of the burst is used up, so that an object that goes on is throttled sooner.
    fn end_throttling(&mut self) -> Throttling {
        if self.pauses == 0 {
            return Throttling::Inactive;
        }
        let Self { generation, burst, is_reconciling, .. } = *self;
        *self = Self { level: burst / 2.0, generation, burst, is_reconciling, ..Self::new(Instant::now()) };
        Throttling::Ended
    }

    fn is_cold(&self) -> bool {
        self.level < 1.0 && self.pauses == 0
    }

    /// Counts an event by its source. An event of a child may be the echo of the host's own write, most of all during a reconcile,
    /// so it weighs less than a requeue that the plugin itself asks for.
    fn count(&mut self, source: String, origin: EventOrigin) {
        let weight = match source.as_str() {
            REQUEUE_SOURCE => 3,
            _ if self.is_reconciling => 1,
            _ => 2,
        };
        if let Some(known) = self.sources.iter_mut().find(|known| known.name == source) {
            known.weight += weight;
        } else if self.sources.len() < MAX_SOURCES {
            self.sources.push(EventSource { name: source, origin, weight });
        } else if let Some(least) = self.sources.iter_mut().min_by_key(|known| known.weight) {
            // The new source inherits the weight, as in the space-saving algorithm: otherwise rare sources would replace each
            // other and none would ever be counted.
            *least = EventSource { name: source, origin, weight: least.weight + weight };
        }
    }
}

impl Counted {
    /// Makes room for another object where there are many. The limit grows with what is left: in a burst all are hot, and to look at all
    /// of them for each new one would take ever longer.
    fn drop_cold(&mut self, now: Instant) {
        if self.loops.len() < self.left.saturating_mul(2).max(MANY_OBJECTS) {
            return;
        }
        self.loops.retain(|_, hot_loop| {
            hot_loop.cool(now);
            !hot_loop.is_cold()
        });
        self.left = self.loops.len();
        self.loops.shrink_to(self.left.saturating_mul(2));
    }
}

impl HotLoops {
    /// Counts an event for an object. `source` is called only if the object is close to being throttled: naming costs time.
    pub fn count_event(&self, key: &Key, origin: EventOrigin, source: impl FnOnce() -> String) {
        let loops = &mut self.lock().loops;
        let Some(hot_loop) = loops.get_mut(key) else { return };
        hot_loop.events_since_start = hot_loop.events_since_start.saturating_add(1);
        if hot_loop.level > hot_loop.burst / 2.0 || hot_loop.pauses > 0 {
            hot_loop.count(source(), origin);
        }
    }

    /// Records the start of a reconcile. Ends the throttling of an object without events since the last start.
    pub fn start_reconcile(&self, key: &Key) -> Throttling {
        let loops = &mut self.lock().loops;
        let Some(hot_loop) = loops.get_mut(key) else { return Throttling::Inactive };
        let throttling =
            if hot_loop.events_since_start == 0 { hot_loop.end_throttling() } else { Throttling::Inactive };
        (hot_loop.events_since_start, hot_loop.is_reconciling) = (0, true);
        throttling
    }

    /// Ends the throttling of an object whose inputs are unchanged: its last event was, for example, the echo of an own write.
    pub fn end_throttling(&self, key: &Key) -> Throttling {
        self.lock().loops.get_mut(key).map_or(Throttling::Inactive, HotLoop::end_throttling)
    }

    /// Counts the further calls of a reconcile with `rounds` rounds, in each of which the plugin returned other children.
    pub fn count_extra_rounds(&self, key: &Key, rounds: usize) {
        if let Some(hot_loop) = self.lock().loops.get_mut(key) {
            // `count_call` has counted the first call.
            hot_loop.level += rounds.saturating_sub(1) as f64;
        }
    }

    /// Counts an answer that differs from the one before although the object's generation is the same.
    pub fn count_changed_answer(&self, key: &Key) {
        if let Some(hot_loop) = self.lock().loops.get_mut(key) {
            hot_loop.changed_answers = hot_loop.changed_answers.saturating_add(1);
        }
    }

    /// Counts a reconcile that calls the plugin for an object with so many children. A new generation of the object is a user's change
    /// and does not count.
    pub fn count_call(&self, key: &Key, generation: i64, children: usize) {
        self.count_call_at(key, generation, Instant::now());
        if let Some(hot_loop) = self.lock().loops.get_mut(key) {
            hot_loop.burst = (MAX_BURST_PER_CHILD * children as f64).max(MAX_BURST);
        }
    }

    fn count_call_at(&self, key: &Key, generation: i64, now: Instant) {
        let mut counted = self.lock();
        if !counted.loops.contains_key(key) {
            counted.drop_cold(now);
        }
        let hot_loop = counted.loops.entry(key.clone()).or_insert_with(|| HotLoop::new(now));
        hot_loop.cool(now);
        if hot_loop.generation == generation {
            hot_loop.level += 1.0;
        }
        hot_loop.generation = generation;
    }

    /// Records the end of a reconcile and returns the pause that the object has to make, if it is throttled.
    pub fn end_reconcile(&self, key: &Key, action: Action) -> Option<Duration> {
        let loops = &mut self.lock().loops;
        let hot_loop = loops.get_mut(key)?;
        hot_loop.is_reconciling = false;
        if hot_loop.level <= hot_loop.burst && hot_loop.pauses == 0 {
            return None;
        }
        if matches!(action, Action::Requeue) || matches!(action, Action::RequeueAfter(delay) if delay < FIRST_PAUSE) {
            hot_loop.events_since_start = hot_loop.events_since_start.saturating_add(1);
            // No watch event belongs to this requeue. Without the count above, `start_reconcile` would take the object for calm.
            hot_loop.count(REQUEUE_SOURCE.to_owned(), EventOrigin::Own);
        }
        hot_loop.pauses = hot_loop.pauses.saturating_add(1);
        // The fourth doubling reaches the longest pause. The limit keeps the shift below from overflowing.
        let doublings = hot_loop.pauses.saturating_sub(PAUSES_BEFORE_REPORT).min(8);
        Some(FIRST_PAUSE.saturating_mul(1 << doublings).min(MAX_PAUSE))
    }

    /// Reason and message of the condition `Throttled`; none for an object that is not throttled, or not for long enough.
    pub fn throttled_reason(&self, key: &Key) -> Option<StatusReason> {
        let counted = self.lock();
        let hot_loop = counted.loops.get(key).filter(|hot_loop| hot_loop.pauses >= PAUSES_BEFORE_REPORT)?;
        let busiest = hot_loop.sources.iter().max_by_key(|source| source.weight);
        let name = busiest.map_or("unknown", |source| &source.name);
        // If the plugin's answers differ, the host writes children again and again, and those writes are the most frequent
        // events. Their source is then not the cause. A changed lookup is one, whatever the plugin makes of it.
        let may_be_echo = name != REQUEUE_SOURCE && busiest.is_none_or(|source| source.origin == EventOrigin::Own);
        let message = if hot_loop.changed_answers >= PAUSES_BEFORE_REPORT && may_be_echo {
            "reconciled over and over, and slowed down until it calms; its plugin returns other children again and again"
                .to_owned()
        } else {
            format!(
                "reconciled over and over, and slowed down until it calms; the busiest source of events is {name}; see \
                 whether somebody else changes what this object's plugin wants"
            )
        };
        Some(StatusReason::new("HotLoop", message))
    }

    /// The number of objects that are counted.
    pub fn len(&self) -> usize {
        self.lock().loops.len()
    }

    /// Whether no object is counted.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, key: &Key) {
        self.lock().loops.remove(key);
    }

    /// Forgets all objects of a plugin.
    pub fn forget_plugin(&self, plugin: &str) {
        self.lock().loops.retain(|key, _| &*key.plugin != plugin);
    }

    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::ObjectRef;

    fn key() -> Key {
        Key { plugin: "p".into(), object: ObjectRef::new("ns", "a") }
    }

    /// Runs reconciles with one event each.
    fn fight(hot_loops: &HotLoops, rounds: u32, now: Instant) -> Option<Duration> {
        loop_with(hot_loops, EventOrigin::Own, rounds, now)
    }

    fn loop_with(hot_loops: &HotLoops, origin: EventOrigin, rounds: u32, now: Instant) -> Option<Duration> {
        (0..rounds).fold(None, |_, _| {
            hot_loops.count_event(&key(), origin, || "Deployment 'a'".to_owned());
            hot_loops.start_reconcile(&key());
            hot_loops.count_call_at(&key(), 1, now);
            hot_loops.end_reconcile(&key(), Action::AwaitChange)
        })
    }

    #[test]
    fn a_fight_over_a_child_is_throttled_and_reported_until_it_ends() {
        let (hot_loops, now) = (HotLoops::default(), Instant::now());
        assert_eq!(fight(&hot_loops, 61, now), None, "the first call counts for nothing, and so many are ordinary");
        assert_eq!(fight(&hot_loops, 1, now), Some(FIRST_PAUSE));
        assert_eq!(hot_loops.throttled_reason(&key()), None, "not reported at once");
        assert_eq!(fight(&hot_loops, 4, now), Some(FIRST_PAUSE));
        assert!(hot_loops.throttled_reason(&key()).is_some_and(|why| why.message.contains("Deployment 'a'")));
        assert_eq!(fight(&hot_loops, 2, now), Some(4 * FIRST_PAUSE));
        assert_eq!(fight(&hot_loops, 20, now), Some(MAX_PAUSE));
        assert_eq!(hot_loops.start_reconcile(&key()), Throttling::Ended, "no event since the last reconcile");
        assert_eq!(hot_loops.throttled_reason(&key()), None);
        assert_eq!(hot_loops.end_reconcile(&key(), Action::AwaitChange), None);
    }

    #[test]
    fn an_object_with_many_children_is_no_loop_while_they_start() {
        let (hot_loops, now) = (HotLoops::default(), Instant::now());
        hot_loops.count_call(&key(), 1, 100);
        assert_eq!(fight(&hot_loops, 300, now), None);
        assert_eq!(fight(&hot_loops, 2, now), Some(FIRST_PAUSE));
        hot_loops.count_call(&key(), 1, 2);
        assert!(
            hot_loops.lock().loops.get(&key()).is_some_and(|hot_loop| hot_loop.burst == MAX_BURST),
            "few children left"
        );
    }

    #[test]
    fn answers_that_differ_are_the_plugins_unless_somebody_changes_what_it_looks_up() {
        for (origin, blamed) in [(EventOrigin::Own, "its plugin"), (EventOrigin::Lookup, "Deployment 'a'")] {
            let (hot_loops, now) = (HotLoops::default(), Instant::now());
            loop_with(&hot_loops, origin, 80, now);
            (0..PAUSES_BEFORE_REPORT).for_each(|_| hot_loops.count_changed_answer(&key()));
            let message = hot_loops.throttled_reason(&key()).map(|why| why.message).unwrap_or_default();
            assert!(message.contains(blamed), "{origin:?}: {message}");
        }
    }

    #[test]
    fn a_reconcile_with_unchanged_inputs_ends_the_throttling() {
        let (hot_loops, now) = (HotLoops::default(), Instant::now());
        assert_eq!(hot_loops.end_throttling(&key()), Throttling::Inactive, "never called");
        fight(&hot_loops, 61, now);
        assert_eq!(hot_loops.end_throttling(&key()), Throttling::Inactive, "never paused");
        fight(&hot_loops, 10, now);
        hot_loops.count_event(&key(), EventOrigin::Own, || "Deployment 'a'".to_owned());
        assert_eq!(hot_loops.start_reconcile(&key()), Throttling::Inactive, "there was an event");
        assert_eq!(hot_loops.end_throttling(&key()), Throttling::Ended, "but it changed no input");
        assert_eq!(
            (hot_loops.throttled_reason(&key()), hot_loops.end_reconcile(&key(), Action::AwaitChange)),
            (None, None)
        );
        assert!(fight(&hot_loops, 40, now).is_some(), "it is hot again sooner than at first");
    }

    #[test]
    fn new_generations_and_rare_events_are_not_throttled() {
        let (hot_loops, now) = (HotLoops::default(), Instant::now());
        for generation in 0..1000 {
            hot_loops.count_call_at(&key(), generation, now);
            assert_eq!(hot_loops.end_reconcile(&key(), Action::AwaitChange), None);
        }
        for second in 0..1000 {
            hot_loops.count_call_at(&key(), 1, now + Duration::from_secs(second));
            assert_eq!(hot_loops.end_reconcile(&key(), Action::AwaitChange), None);
        }
    }

    #[test]
    fn an_immediate_requeue_by_the_plugin_counts_as_its_own_source() {
        let (hot_loops, now) = (HotLoops::default(), Instant::now());
        for _ in 0..80 {
            hot_loops.start_reconcile(&key());
            hot_loops.count_call_at(&key(), 1, now);
            hot_loops.end_reconcile(&key(), Action::RequeueAfter(Duration::ZERO));
        }
        assert!(hot_loops.throttled_reason(&key()).is_some_and(|why| why.message.contains(REQUEUE_SOURCE)));
    }

    #[test]
    fn objects_without_recent_calls_are_dropped() {
        let (hot_loops, now) = (HotLoops::default(), Instant::now());
        for number in 0..3 * MANY_OBJECTS {
            let key = Key { plugin: "p".into(), object: ObjectRef::new("ns", &number.to_string()) };
            hot_loops.count_call_at(&key, 1, now);
        }
        assert!(hot_loops.len() <= MANY_OBJECTS);
    }

    #[test]
    fn objects_with_recent_calls_are_kept_however_many_they_are() {
        let (hot_loops, now) = (HotLoops::default(), Instant::now());
        let key = |number: usize| Key { plugin: "p".into(), object: ObjectRef::new("ns", &number.to_string()) };
        for number in 0..3 * MANY_OBJECTS {
            (0..3).for_each(|_| hot_loops.count_call_at(&key(number), 1, now));
        }
        assert_eq!(hot_loops.len(), 3 * MANY_OBJECTS);
        let later = now + Duration::from_secs(10);
        for number in 3 * MANY_OBJECTS..5 * MANY_OBJECTS {
            hot_loops.count_call_at(&key(number), 1, later);
        }
        assert!(hot_loops.len() < 3 * MANY_OBJECTS, "those of before are kept: {}", hot_loops.len());
    }
}
