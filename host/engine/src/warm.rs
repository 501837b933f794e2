//! Instances that have answered and wait for their plugin's next call, where its manifest lets one answer several (`callsPerInstance`). What
//! they hold is others' as soon as somebody wants it. Calls nothing.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    time::{Duration, Instant},
};

use wasmtime::{Store, component::Instance};

use crate::{
    CallContext, Limits,
    call::{Home, begin_slices},
    state::CallState,
};

/// The most instances of one plugin that wait. Calls that end within a slice come one after another.
const MOST_OF_PLUGIN: usize = 2;

/// The most instances of all plugins that wait: half of the places, so that a new call finds one.
const MOST_OF_ALL: usize = 16;

/// How long an instance waits at most.
const LONGEST: Duration = Duration::from_secs(60);

/// By how many bytes an instance may grow in any case.
const GROWTH: usize = 1 << 20;

/// An instance that has answered, and its calls so far.
pub(crate) struct WarmInstance {
    home: Home,
    instance: Instance,
    calls: u32,
    /// The bytes that it had after its first call.
    memory_at_first: usize,
}

impl WarmInstance {
    /// An instance after its first call.
    pub(crate) fn new(home: Home, instance: Instance) -> Self {
        let memory_at_first = home.store.data().meter.memory();
        Self { home, instance, calls: 1, memory_at_first }
    }

    /// Begins another call. False if there is no memory for a request of this size beside what it has.
    pub(crate) fn begin(&mut self, limits: &Limits, request: usize, context: CallContext, seed: Option<u64>) -> bool {
        self.calls += 1;
        begin_slices(&mut self.home.store, limits);
        self.home.store.data_mut().begin_again(limits, request, context, seed)
    }

    /// What it lives in, and the instance.
    pub(crate) fn parts(&mut self) -> (&mut Store<CallState>, Instance) {
        (&mut self.home.store, self.instance)
    }

    /// Whether it may answer once more. One whose memory grows from call to call keeps what it should not, and would come to its limit.
    fn is_good_for_more(&self, most_calls: u32) -> bool {
        let meter = &self.home.store.data().meter;
        let most_memory = (2 * self.memory_at_first + GROWTH).min(meter.limit() / 2);
        self.calls < most_calls && meter.memory() <= most_memory
    }
}

/// The instances of one plugin that wait. They go with its code.
pub(crate) struct WarmInstances {
    most_calls: u32,
    /// Since when, in that order.
    waiting: Mutex<Vec<(Instant, WarmInstance)>>,
    of_all: Weak<WarmInstancesOfAll>,
}

impl WarmInstances {
    /// The one that came last: its memory is the warmest, and those that are too many grow old.
    pub(crate) fn take(&self) -> Option<WarmInstance> {
        lock(&self.waiting).pop().map(|(_, instance)| instance)
    }

    /// Keeps an instance for the next call, if it is good for one.
    pub(crate) fn put(&self, mut instance: WarmInstance) {
        if !instance.is_good_for_more(self.most_calls) {
            return;
        }
        instance.home.store.data_mut().rest();
        let surplus = {
            let mut waiting = lock(&self.waiting);
            waiting.push((Instant::now(), instance));
            (waiting.len() > MOST_OF_PLUGIN).then(|| waiting.remove(0))
        };
        // Not under the lock: what an instance held wakes others.
        drop(surplus);
        if let Some(of_all) = self.of_all.upgrade() {
            of_all.bound();
        }
    }

    fn oldest(&self) -> Option<Instant> {
        lock(&self.waiting).first().map(|(since, _)| *since)
    }

    fn take_before(&self, end: Option<Instant>) -> Vec<WarmInstance> {
        let mut waiting = lock(&self.waiting);
        let old = waiting.partition_point(|(since, _)| end.is_none_or(|end| *since < end));
        waiting.drain(..old).map(|(_, instance)| instance).collect()
    }
}

/// The instances of all plugins that wait.
#[derive(Default)]
pub(crate) struct WarmInstancesOfAll {
    plugins: Mutex<Vec<Weak<WarmInstances>>>,
}

impl WarmInstancesOfAll {
    /// Those of a plugin, each of which may answer so many calls.
    pub(crate) fn of_plugin(self: &Arc<Self>, most_calls: u32) -> Arc<WarmInstances> {
        let of_plugin = Arc::new(WarmInstances { most_calls, waiting: Mutex::default(), of_all: Arc::downgrade(self) });
        let mut plugins = lock(&self.plugins);
        plugins.retain(|plugin| plugin.strong_count() > 0);
        plugins.push(Arc::downgrade(&of_plugin));
        of_plugin
    }

    /// Lets all of them go; false if there are none.
    pub(crate) fn give_back(&self) -> bool {
        self.drop_before(None)
    }

    /// Lets those go that have waited for long.
    pub(crate) fn drop_old(&self) {
        if let Some(end) = Instant::now().checked_sub(LONGEST) {
            self.drop_before(Some(end));
        }
    }

    fn drop_before(&self, end: Option<Instant>) -> bool {
        let gone: Vec<_> = self.plugins().iter().flat_map(|plugin| plugin.take_before(end)).collect();
        !gone.is_empty()
    }

    /// Lets the oldest ones go while there are too many.
    fn bound(&self) {
        let plugins = self.plugins();
        while plugins.iter().map(|plugin| lock(&plugin.waiting).len()).sum::<usize>() > MOST_OF_ALL {
            let oldest =
                plugins.iter().filter_map(|plugin| Some((plugin.oldest()?, plugin))).min_by_key(|(since, _)| *since);
            let Some((_, plugin)) = oldest else { return };
            let gone = {
                let mut waiting = lock(&plugin.waiting);
                (!waiting.is_empty()).then(|| waiting.remove(0))
            };
            drop(gone);
        }
    }

    fn plugins(&self) -> Vec<Arc<WarmInstances>> {
        lock(&self.plugins).iter().filter_map(Weak::upgrade).collect()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
