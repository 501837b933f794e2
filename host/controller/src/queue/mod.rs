//! The work queue: which object is reconciled next. Knows keys only, and nothing about what a reconcile does.
//!
//! # Flow
//!
//! Watch events, timers and plugin swaps add keys. One task takes them with [`Queue::next`], reconciles each in a task of its own
//! and returns it with [`Queue::done`], together with the [`Action`] that follows.
//!
//! # Guarantees
//!
//! - A key waits at most once, however often it is added, and is never reconciled twice at the same time. A key that is added
//!   during its reconcile is reconciled once more afterwards.
//! - Plugins take turns, and none exceeds its concurrency, so a busy plugin does not delay the others.
//! - Live keys go before bulk keys, but bulk keys do not starve.
//! - A pause delays a key and loses nothing: what is added in the meantime is reconciled after it.
//!
//! # Caveats
//!
//! The queue lives in memory. After a restart every object is added again as bulk work. A key that was taken and is not returned
//! blocks itself for ever.
//!
//! # Example
//!
//! ```
//! use pilothouse_controller::{
//!     clock::Random,
//!     object::ObjectRef,
//!     queue::{Action, Key, Priority, Queue},
//! };
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let queue = Queue::new(4, Random::seeded(1));
//! let key = Key { plugin: "web".into(), object: ObjectRef::new("shop", "front") };
//! queue.add(key.clone(), Priority::Bulk);
//! queue.add(key.clone(), Priority::Live);
//!
//! assert_eq!(queue.next().await, Some(key.clone()), "added twice, taken once");
//! queue.done(&key, Action::AwaitChange, None);
//!
//! queue.close();
//! assert_eq!(queue.next().await, None);
//! # });
//! # Ok::<(), std::io::Error>(())
//! ```

mod action;
mod backoff;
mod key;
mod key_state;
mod plugin_queue;
mod state;
mod stats;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use crate::clock::Random;

use self::state::{Done, QueueState};
pub use self::{
    action::Action,
    backoff::{BACKOFF_FIRST, delay_after},
    key::{Key, Priority},
    stats::{BUCKET_BOUNDS, Durations, QueueLoad, QueueSnapshot, QueueStats},
};

/// The queue. Any number of tasks may add keys; one task takes them.
#[derive(Debug)]
pub struct Queue {
    state: Mutex<QueueState>,
    wake: Notify,
    /// Told to those who wait for the end of reconciles.
    ended: Notify,
    concurrency: usize,
    random: Random,
}

impl Queue {
    /// A queue that lets each plugin reconcile `concurrency` objects at once. `random` is the source of the jitter of retries.
    pub fn new(concurrency: usize, random: Random) -> Self {
        Self {
            state: Mutex::default(),
            random,
            wake: Notify::new(),
            ended: Notify::new(),
            concurrency: concurrency.max(1),
        }
    }

    /// Includes a plugin in the statistics from now on, even before its first key.
    pub fn open(&self, plugin: &str, concurrency: Option<usize>) {
        self.lock().open(plugin, concurrency);
    }

    /// Adds a key. A key that waits already only has its priority raised.
    pub fn add(&self, key: Key, priority: Priority) {
        self.lock().add(key, priority);
        self.wake.notify_one();
    }

    /// Adds a key and ends its pause, because somebody changed the object itself.
    pub fn add_urgent(&self, key: Key) {
        self.lock().add_urgent(key);
        self.wake.notify_one();
    }

    /// Adds many keys as bulk work.
    pub fn add_all(&self, keys: impl IntoIterator<Item = Key>) {
        let mut state = self.lock();
        for key in keys {
            state.add(key, Priority::Bulk);
        }
        drop(state);
        self.wake.notify_one();
    }

    /// Waits for the next key to reconcile; none once the queue is closed. Every key must be returned with [`Queue::done`].
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
            // The lock is released here. A key that is added before the wait begins is not missed: `Notify` stores the wake-up.
            match timer {
                Some(at) => tokio::select! {
                    biased;
                    () = tokio::time::sleep_until(at) => {}
                    () = self.wake.notified() => {}
                },
                None => self.wake.notified().await,
            }
        }
    }

    /// Returns a key after its reconcile. With a pause, the key is reconciled again after the pause and not before; keys that are
    /// added in the meantime wait for it.
    pub fn done(&self, key: &Key, action: Action, pause: Option<Duration>) {
        let done = Done { action, pause, jitter: self.random.fraction() };
        self.lock().done(key, done, Instant::now());
        self.wake.notify_one();
        self.ended.notify_waiters();
    }

    /// Waits until none of a plugin's keys is being reconciled.
    pub async fn until_idle(&self, plugin: &str) {
        loop {
            let mut ended = std::pin::pin!(self.ended.notified());
            // From here on no end is missed.
            ended.as_mut().enable();
            if !self.lock().is_working(plugin) {
                return;
            }
            ended.await;
        }
    }

    /// Forgets a plugin's waiting keys, timers and failures. Reconciles in progress go on.
    pub fn forget_plugin(&self, plugin: &str) {
        self.lock().forget_plugin(plugin);
    }

    /// Hands out no more keys and ends [`Queue::next`].
    pub fn close(&self) {
        self.lock().closed = true;
        self.wake.notify_one();
    }

    /// The number of a key's failures in a row.
    pub fn failures(&self, key: &Key) -> u32 {
        self.lock().failures(key)
    }

    /// The number of keys that wait, are being reconciled, or have a timer or failures.
    pub fn remembered_keys(&self) -> usize {
        self.lock().remembered_keys()
    }

    /// The numbers of each plugin, for the metrics.
    pub fn stats(&self) -> BTreeMap<Arc<str>, QueueSnapshot> {
        self.lock().stats(Instant::now())
    }

    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
