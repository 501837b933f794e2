//! The guard against hot loops: an object that is reconciled over and over, because somebody fights over its children or
//! its plugin never comes to rest, is slowed down, and the busiest source of its events is named. Counts only; nothing is
//! lost, for a slowed object is still reconciled after its last event.

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

/// Calls at once before an object counts as hot, and calls per second that it may go on with.
const BURST: f64 = 60.0;
const PER_SECOND: f64 = 1.0;

/// The first pause of a hot object, and the longest. It doubles from the fifth on.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(16);

/// Pauses in a row after which it is told: a rollout of many Pods is hot too, but soon over.
const PAUSES_BEFORE_TOLD: u32 = 5;

/// Sources remembered of one object; a new one takes the place of the quietest.
const SOURCES: usize = 8;

/// Objects remembered; cold ones go beyond that.
const REMEMBERED: usize = 4096;

/// The source of an object whose plugin itself asks to be asked again at once.
const REQUEUE: &str = "the plugin's own requeue-after";

/// How hot each object is.
#[derive(Debug, Default)]
pub struct HotLoops(Mutex<HashMap<Key, HotLoop>>);

#[derive(Debug)]
struct HotLoop {
    level: f64,
    /// When the level was right.
    at: Instant,
    generation: i64,
    /// Events since the last reconcile began.
    woken: u32,
    /// Whether a reconcile is under way.
    under_way: bool,
    /// Pauses in a row.
    pauses: u32,
    /// Answers in a row that were other ones, though the object was the same.
    other_answers: u32,
    sources: Vec<(String, u32)>,
}

impl HotLoop {
    fn new(now: Instant) -> Self {
        Self {
            level: 0.0,
            at: now,
            generation: 0,
            woken: 0,
            under_way: false,
            pauses: 0,
            other_answers: 0,
            sources: Vec::new(),
        }
    }

    fn cool(&mut self, now: Instant) {
        let elapsed = now.saturating_duration_since(self.at).as_secs_f64();
        (self.level, self.at) = ((self.level - elapsed * PER_SECOND).max(0.0), now);
    }

    /// Ends the pauses; whether there were any.
    fn end_pauses(&mut self) -> bool {
        let paused = self.pauses > 0;
        if paused {
            let Self { generation, under_way, .. } = *self;
            *self = Self { level: BURST / 2.0, generation, under_way, ..Self::new(Instant::now()) };
        }
        paused
    }

    fn is_cold(&self) -> bool {
        self.level < 1.0 && self.pauses == 0
    }

    /// Counts an event. One of a child may be the echo of the host's own write, and counts less than what the plugin asks for
    /// itself; least while the object is reconciled.
    fn count(&mut self, source: String) {
        let weight = match source.as_str() {
            REQUEUE => 3,
            _ if self.under_way => 1,
            _ => 2,
        };
        if let Some((_, count)) = self.sources.iter_mut().find(|(known, _)| *known == source) {
            *count += weight;
        } else if self.sources.len() < SOURCES {
            self.sources.push((source, weight));
        } else if let Some(quietest) = self.sources.iter_mut().min_by_key(|(_, count)| *count) {
            *quietest = (source, quietest.1 + weight);
        }
    }
}

impl HotLoops {
    /// An event woke an object. The source is named only if it matters.
    pub fn woken(&self, key: &Key, source: impl FnOnce() -> String) {
        let mut loops = self.lock();
        let Some(hot_loop) = loops.get_mut(key) else { return };
        hot_loop.woken = hot_loop.woken.saturating_add(1);
        if hot_loop.level > BURST / 2.0 || hot_loop.pauses > 0 {
            hot_loop.count(source());
        }
    }

    /// A reconcile begins; whether the object has calmed down since the last one.
    pub fn begins(&self, key: &Key) -> bool {
        let mut loops = self.lock();
        let Some(hot_loop) = loops.get_mut(key) else { return false };
        let calm = hot_loop.woken == 0 && hot_loop.end_pauses();
        (hot_loop.woken, hot_loop.under_way) = (0, true);
        calm
    }

    /// What woke the object is nothing new to its plugin, such as an echo of the host's own write: it calms down. Tells whether
    /// it was slowed down until now.
    pub fn calm_down(&self, key: &Key) -> bool {
        self.lock().get_mut(key).is_some_and(HotLoop::end_pauses)
    }

    /// The plugin was asked so many times in this reconcile, and returned something else each time.
    pub fn not_converging(&self, key: &Key, rounds: usize) {
        if let Some(hot_loop) = self.lock().get_mut(key) {
            // The first call is counted already.
            hot_loop.level += rounds.saturating_sub(1) as f64;
        }
    }

    /// The plugin returned something else than before, and its object had not changed.
    pub fn answer_differs(&self, key: &Key) {
        if let Some(hot_loop) = self.lock().get_mut(key) {
            hot_loop.other_answers = hot_loop.other_answers.saturating_add(1);
        }
    }

    /// The plugin is called in this reconcile. A change of the object itself is somebody's wish and makes nothing hot.
    pub fn called(&self, key: &Key, generation: i64) {
        self.called_at(key, generation, Instant::now());
    }

    fn called_at(&self, key: &Key, generation: i64, now: Instant) {
        let mut loops = self.lock();
        if loops.len() >= REMEMBERED && !loops.contains_key(key) {
            loops.retain(|_, hot_loop| {
                hot_loop.cool(now);
                !hot_loop.is_cold()
            });
        }
        let hot_loop = loops.entry(key.clone()).or_insert_with(|| HotLoop::new(now));
        hot_loop.cool(now);
        if hot_loop.generation == generation {
            hot_loop.level += 1.0;
        }
        hot_loop.generation = generation;
    }

    /// A reconcile ends: how long the object has to pause, if it is hot.
    pub fn ends(&self, key: &Key, action: Action) -> Option<Duration> {
        let mut loops = self.lock();
        let hot_loop = loops.get_mut(key)?;
        hot_loop.under_way = false;
        if hot_loop.level <= BURST && hot_loop.pauses == 0 {
            return None;
        }
        if matches!(action, Action::Requeue) || matches!(action, Action::RequeueAfter(delay) if delay < FIRST_PAUSE) {
            hot_loop.woken = hot_loop.woken.saturating_add(1);
            hot_loop.count(REQUEUE.to_owned());
        }
        hot_loop.pauses = hot_loop.pauses.saturating_add(1);
        let doublings = hot_loop.pauses.saturating_sub(PAUSES_BEFORE_TOLD).min(8);
        Some(FIRST_PAUSE.saturating_mul(1 << doublings).min(LONGEST_PAUSE))
    }

    /// What to tell of an object that is slowed down.
    pub fn slowed(&self, key: &Key) -> Option<StatusReason> {
        let loops = self.lock();
        let hot_loop = loops.get(key).filter(|hot_loop| hot_loop.pauses >= PAUSES_BEFORE_TOLD)?;
        let busiest = hot_loop.sources.iter().max_by_key(|(_, count)| *count).map_or("unknown", |(source, _)| source);
        // The host's own writes wake the object too, so that the busiest source is innocent where the plugin is the cause.
        let message = if hot_loop.other_answers >= PAUSES_BEFORE_TOLD && busiest != REQUEUE {
            "reconciled over and over, and slowed down until it calms; its plugin returns other children again and again"
                .to_owned()
        } else {
            format!(
                "reconciled over and over, and slowed down until it calms; the busiest source of events is {busiest}; see \
                 whether somebody else changes what this object's plugin wants"
            )
        };
        Some(StatusReason::new("HotLoop", message))
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, key: &Key) {
        self.lock().remove(key);
    }

    /// Forgets all objects of a plugin.
    pub fn forget_plugin(&self, plugin: &str) {
        self.lock().retain(|key, _| &*key.plugin != plugin);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, HotLoop>> {
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

    /// Reconciles with one event each.
    fn fight(pace: &HotLoops, rounds: u32, now: Instant) -> Option<Duration> {
        (0..rounds).fold(None, |_, _| {
            pace.woken(&key(), || "Deployment 'a'".to_owned());
            pace.begins(&key());
            pace.called_at(&key(), 1, now);
            pace.ends(&key(), Action::AwaitChange)
        })
    }

    #[test]
    fn a_fight_is_slowed_down_told_and_over_when_nobody_fights() {
        let (pace, now) = (HotLoops::default(), Instant::now());
        assert_eq!(fight(&pace, 61, now), None, "the first call counts for nothing, and so many are ordinary");
        assert_eq!(fight(&pace, 1, now), Some(FIRST_PAUSE));
        assert_eq!(pace.slowed(&key()), None, "not told at once");
        assert_eq!(fight(&pace, 4, now), Some(FIRST_PAUSE));
        assert!(pace.slowed(&key()).is_some_and(|why| why.message.contains("Deployment 'a'")));
        assert_eq!(fight(&pace, 2, now), Some(4 * FIRST_PAUSE));
        assert_eq!(fight(&pace, 20, now), Some(LONGEST_PAUSE));
        assert!(pace.begins(&key()), "no event since the last reconcile");
        assert_eq!(pace.slowed(&key()), None);
        assert_eq!(pace.ends(&key(), Action::AwaitChange), None);
    }

    #[test]
    fn an_echo_that_is_nothing_new_ends_the_pauses() {
        let (pace, now) = (HotLoops::default(), Instant::now());
        assert!(!pace.calm_down(&key()), "there is nothing to end");
        fight(&pace, 61, now);
        assert!(!pace.calm_down(&key()), "it has never paused");
        fight(&pace, 10, now);
        pace.woken(&key(), || "Deployment 'a'".to_owned());
        assert!(!pace.begins(&key()), "something woke it");
        assert!(pace.calm_down(&key()), "but it was nothing new");
        assert_eq!((pace.slowed(&key()), pace.ends(&key(), Action::AwaitChange)), (None, None));
        assert!(fight(&pace, 40, now).is_some(), "it is hot again sooner than at first");
    }

    #[test]
    fn somebodys_changes_and_slow_events_are_ordinary() {
        let (pace, now) = (HotLoops::default(), Instant::now());
        for generation in 0..1000 {
            pace.called_at(&key(), generation, now);
            assert_eq!(pace.ends(&key(), Action::AwaitChange), None);
        }
        for second in 0..1000 {
            pace.called_at(&key(), 1, now + Duration::from_secs(second));
            assert_eq!(pace.ends(&key(), Action::AwaitChange), None);
        }
    }

    #[test]
    fn a_plugin_that_asks_to_be_asked_at_once_is_its_own_source() {
        let (pace, now) = (HotLoops::default(), Instant::now());
        for _ in 0..80 {
            pace.begins(&key());
            pace.called_at(&key(), 1, now);
            pace.ends(&key(), Action::RequeueAfter(Duration::ZERO));
        }
        assert!(pace.slowed(&key()).is_some_and(|why| why.message.contains(REQUEUE)));
    }

    #[test]
    fn cold_objects_are_forgotten() {
        let (pace, now) = (HotLoops::default(), Instant::now());
        for number in 0..3 * REMEMBERED {
            let key = Key { plugin: "p".into(), object: ObjectRef::new("ns", &number.to_string()) };
            pace.called_at(&key, 1, now);
        }
        assert!(pace.lock().len() <= REMEMBERED);
    }
}
