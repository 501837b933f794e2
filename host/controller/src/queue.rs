//! The queue of objects to reconcile: each at most once, never twice at a time, plugins in turn, live changes before
//! bulk work, timers and backoff. Knows keys only, not what is done with them.

mod backoff;
mod entry;
mod key;
mod lane;
mod next;
mod state;
mod tally;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use tokio::sync::Notify;

use self::state::State;
pub use self::{
    backoff::BACKOFF_FIRST,
    key::{Key, Priority},
    next::Next,
    tally::{BOUNDS, Durations, Load, Tally},
};

/// The queue. One task takes from it; any number put into it.
#[derive(Debug)]
pub struct Queue {
    state: Mutex<State>,
    wake: Notify,
    concurrency: usize,
}

impl Queue {
    /// A queue that lets each plugin work on `concurrency` objects at once.
    pub fn new(concurrency: usize) -> Self {
        Self { state: Mutex::default(), wake: Notify::new(), concurrency: concurrency.max(1) }
    }

    /// Counts a plugin's keys from now on, also while there are none.
    pub fn open(&self, plugin: &str) {
        self.lock().open(plugin);
    }

    /// Asks for a key. Asking twice is asking once.
    pub fn add(&self, key: Key, priority: Priority) {
        self.lock().add(key, priority);
        self.wake.notify_one();
    }

    /// Asks for a key for which no pause counts: somebody changed the object itself.
    pub fn add_urgent(&self, key: Key) {
        self.lock().add_urgent(key);
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
                state.next_timer()
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
        self.lock().forget_plugin(plugin);
    }

    /// Lets no more keys out and ends [`Queue::next`].
    pub fn close(&self) {
        self.lock().closed = true;
        self.wake.notify_one();
    }

    /// How many failures in a row a key has.
    pub fn failures(&self, key: &Key) -> u32 {
        self.lock().failures(key)
    }

    /// What happened to each plugin's keys, and how it is with them now.
    pub fn tallies(&self) -> BTreeMap<Arc<str>, (Tally, Load)> {
        self.lock().tallies(Instant::now())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
