//! What all calls may have together: memory, and places for their instances. A call reserves what its plugin needed before, and waits for
//! it with nothing in its hands, so that no two calls wait for each other; what it needs beyond that it gets only if it is free. No
//! plugin gets so much that nothing is left for the others.

use std::{
    collections::VecDeque,
    path::Path,
    pin::pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::Notify;

/// The unit in which memory is counted: a page of WebAssembly.
const UNIT: usize = 64 << 10;

/// What a plugin reserves of which nothing is known yet.
const FIRST: usize = 2 << 20;

/// The part of a container's memory that calls may have. The rest is for the caches, compilation and what is on its way.
const PART_OF_CONTAINER: usize = 2;

/// How many times as much as it leaves free a plugin may have, beyond its first call. So no plugin takes everything, however many calls
/// it makes: what is left grows scarcer with each plugin that wants all, and is never nothing. (A dynamic threshold, as switches
/// have for the buffers that their ports share: Choudhury and Hahne, 1998.)
const SHARE: usize = 3;

/// Gives back what is held and not used at the moment; false if there is nothing of that kind. Called without any lock of the budget.
pub(crate) type Reclaim = Box<dyn Fn() -> bool + Send + Sync>;

/// What all calls may have together: memory, and places for their instances.
pub(crate) struct Budget {
    state: Mutex<State>,
    freed: Notify,
    total: Amount,
    reclaim: Reclaim,
}

/// Memory and places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Amount {
    units: usize,
    places: usize,
}

#[derive(Debug)]
struct State {
    free: Amount,
    /// The tickets of those who wait for their plugin's first call, in their order. Nobody may overtake them.
    line: VecDeque<u64>,
    tickets: u64,
    /// How many wait, with and without a ticket.
    waiting: usize,
}

/// What the calls of one plugin have at the moment.
#[derive(Default)]
pub(crate) struct Share {
    /// Of the calls of one plugin, one waits for its turn with the other plugins'.
    turn: tokio::sync::Mutex<()>,
    /// Changes only under the lock of the budget.
    held: Mutex<Amount>,
}

impl Budget {
    /// A budget of so many bytes and places. Before anybody waits for some of it, what is not used is given back.
    pub(crate) fn new(bytes: usize, places: usize, reclaim: Reclaim) -> Self {
        let total = Amount { units: (bytes / UNIT).max(1), places };
        let state = State { free: total, line: VecDeque::new(), tickets: 0, waiting: 0 };
        Self { state: Mutex::new(state), freed: Notify::new(), total, reclaim }
    }

    /// Waits until a call may begin, with so much memory and a place of its own. More than there is in all counts as all of it.
    pub(crate) async fn begin_call(self: &Arc<Self>, share: &Arc<Share>, bytes: usize) -> Reservation {
        self.reserve(share, Amount { units: units(bytes), places: 1 }).await
    }

    /// Waits until so much memory is free, and takes it, without a place.
    pub(crate) async fn reserve_memory(self: &Arc<Self>, share: &Arc<Share>, bytes: usize) -> Reservation {
        self.reserve(share, Amount { units: units(bytes), places: 0 }).await
    }

    /// Whether somebody waits for some of it.
    pub(crate) fn is_awaited(&self) -> bool {
        lock(&self.state).waiting > 0
    }

    /// All of its memory, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.total.units * UNIT
    }

    async fn reserve(self: &Arc<Self>, share: &Arc<Share>, wanted: Amount) -> Reservation {
        // More than there is would never be free.
        let wanted = Amount { units: wanted.units.min(self.total.units), ..wanted };
        // Otherwise a plugin with many calls would stand in the line as often as it has calls, and others would wait for all of them.
        let _turn = share.turn.lock().await;
        let mut in_line = InLine { budget: self, waits: false, ticket: None };
        loop {
            let mut freed = pin!(self.freed.notified());
            // Before the attempt: what is given back right after it would wake nobody else.
            freed.as_mut().enable();
            if self.take(share, wanted, &mut in_line) {
                return Reservation { budget: self.clone(), share: share.clone(), taken: wanted };
            }
            // After it is known that somebody waits: what is no longer used from now on is given back by itself.
            if !(self.reclaim)() {
                freed.await;
            }
        }
    }

    /// Takes what is wanted, if that is possible now. Else it is noted that somebody waits, with a ticket if it is for the first call of a
    /// plugin.
    fn take(&self, share: &Share, wanted: Amount, in_line: &mut InLine<'_>) -> bool {
        let mut state = lock(&self.state);
        // Always after the budget's own lock, so that no two of them can wait for each other.
        let mut held = lock(&share.held);
        let is_next = state.line.front().is_none_or(|first| Some(*first) == in_line.ticket);
        let is_first = held.is_nothing();
        // A first call need not leave a share for others: a plugin that has nothing would else never get what needs more than that.
        let fits = state.free.minus(wanted).filter(|left| is_first || held.plus(wanted).is_share_of(*left));
        if let (true, Some(left)) = (is_next, fits) {
            state.free = left;
            *held = held.plus(wanted);
            return true;
        }
        if !in_line.waits {
            in_line.waits = true;
            state.waiting += 1;
        }
        if is_first && in_line.ticket.is_none() {
            state.tickets += 1;
            in_line.ticket = Some(state.tickets);
            let number = state.tickets;
            state.line.push_back(number);
        }
        false
    }
}

impl Amount {
    fn is_nothing(self) -> bool {
        self == Self::default()
    }

    fn plus(self, other: Self) -> Self {
        Self { units: self.units + other.units, places: self.places + other.places }
    }

    fn minus(self, other: Self) -> Option<Self> {
        Some(Self { units: self.units.checked_sub(other.units)?, places: self.places.checked_sub(other.places)? })
    }

    /// Whether a plugin may have so much where this is left for the others.
    fn is_share_of(self, left: Self) -> bool {
        self.is_share_of_memory(left) && self.places <= SHARE * left.places
    }

    fn is_share_of_memory(self, left: Self) -> bool {
        self.units <= SHARE * left.units
    }
}

/// Someone who may wait, and may have a ticket. Leaves the line at the end, also when cancelled.
struct InLine<'a> {
    budget: &'a Budget,
    waits: bool,
    ticket: Option<u64>,
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        if self.waits {
            lock(&self.budget.state).waiting -= 1;
        }
        if let Some(ticket) = self.ticket {
            lock(&self.budget.state).line.retain(|other| *other != ticket);
            // The one behind is next now, although nothing was given back.
            self.budget.freed.notify_waiters();
        }
    }
}

/// What one call has. It is free again when this is dropped.
pub(crate) struct Reservation {
    budget: Arc<Budget>,
    share: Arc<Share>,
    taken: Amount,
}

impl Reservation {
    /// Makes its memory so large, if that much is free and no other call of the plugin has its share. Does not wait: whoever waits while
    /// it holds something can wait for ever.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> bool {
        let more = Amount { units: units(bytes).saturating_sub(self.taken.units), places: 0 };
        more.is_nothing() || self.take_more(more) || ((self.budget.reclaim)() && self.take_more(more))
    }

    /// Gives back what its memory has beyond this.
    pub(crate) fn shrink_to(&mut self, bytes: usize) {
        let less = Amount { units: self.taken.units.saturating_sub(units(bytes)), places: 0 };
        if less.is_nothing() {
            return;
        }
        self.taken = self.taken.minus(less).unwrap_or_default();
        self.give_back(less);
    }

    fn give_back(&self, amount: Amount) {
        // A scope, because those who are woken want both locks.
        {
            let mut state = lock(&self.budget.state);
            let mut held = lock(&self.share.held);
            state.free = state.free.plus(amount);
            *held = held.minus(amount).unwrap_or_default();
        }
        self.budget.freed.notify_waiters();
    }

    fn take_more(&mut self, more: Amount) -> bool {
        let mut state = lock(&self.budget.state);
        let mut held = lock(&self.share.held);
        let is_only = *held == self.taken;
        // It asks for memory alone: that others have all places is no reason to refuse it.
        let fits = |left: &Amount| is_only || held.plus(more).is_share_of_memory(*left);
        let Some(left) = state.free.minus(more).filter(fits) else { return false };
        state.free = left;
        *held = held.plus(more);
        self.taken = self.taken.plus(more);
        true
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.give_back(self.taken);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The units of so many bytes.
fn units(bytes: usize) -> usize {
    bytes.div_ceil(UNIT)
}

/// What the calls of one plugin need, learned from those before.
pub(crate) struct Need(AtomicUsize);

impl Default for Need {
    fn default() -> Self {
        Self(AtomicUsize::new(FIRST))
    }
}

impl Need {
    /// What the next call reserves, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }

    /// A call had this peak. A higher one counts at once, a lower one little by little.
    pub(crate) fn learn(&self, peak: usize) {
        // Of two calls that end at once, one may be forgotten. It is an estimate, which the next call corrects.
        let before = self.bytes();
        self.0.store(peak.max(before - before / 8), Ordering::Relaxed);
    }

    /// A call ended for want of memory: the next one reserves all that it may have.
    pub(crate) fn reserve_all(&self, limit: usize) {
        self.0.store(limit, Ordering::Relaxed);
    }
}

/// The memory for calls in this process: a part of what its container may have; without a container, of what the machine has.
pub fn call_memory_of_container() -> usize {
    memory_of_container().map_or(usize::MAX, |limit| limit / PART_OF_CONTAINER)
}

/// What the container of this process may have; without a container, what the machine has. None if that is not known.
pub fn memory_of_container() -> Option<usize> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limit = limit_of_groups(&groups, Path::new("/sys/fs/cgroup"));
    limit.into_iter().chain(total_in(Path::new("/proc/meminfo"))).min()
}

/// The lowest limit of the control groups of a process and of those around them, after its `/proc/PID/cgroup`: lines such as
/// `4:memory:/a/b` (version 1) and `0::/a/b` (version 2). In a container, the paths may be those outside of it; then only the root is
/// found, which is the container's own.
fn limit_of_groups(groups: &str, mounted: &Path) -> Option<usize> {
    let limits = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?.trim_start_matches('/'));
        let (root, file) = match controllers {
            "" => (mounted.to_owned(), "memory.max"),
            _ if controllers.split(',').any(|it| it == "memory") => (mounted.join("memory"), "memory.limit_in_bytes"),
            _ => return None,
        };
        let around = Path::new(path).ancestors().map(|group| root.join(group).join(file));
        around.filter_map(|file| limit_in(&file)).min()
    });
    limits.min()
}

/// The limit in a file of cgroups; none if there is no such file, or no limit. Version 1 writes none as a number near the largest one.
fn limit_in(file: &Path) -> Option<usize> {
    let text = std::fs::read_to_string(file).ok()?;
    text.trim().parse().ok().filter(|limit| *limit < 1 << 50)
}

/// The memory of the machine, from the line `MemTotal: 24689764 kB`.
fn total_in(file: &Path) -> Option<usize> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    line.trim().strip_suffix("kB")?.trim().parse::<usize>().ok().map(|kilobytes| kilobytes << 10)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    fn budget(units: usize, places: usize) -> Arc<Budget> {
        Arc::new(Budget::new(units * UNIT, places, Box::new(|| false)))
    }

    /// The first of several calls that may begin.
    fn begun(call: impl Future<Output = Reservation>) -> Option<Reservation> {
        call.now_or_never()
    }

    #[tokio::test]
    async fn a_call_gets_what_is_free_and_waits_only_with_empty_hands() {
        let budget = budget(10, 10);
        let [one, two, three] = std::array::from_fn(|_| Arc::<Share>::default());
        let mut first = budget.begin_call(&one, 4 * UNIT).await;
        assert!(first.grow_to(6 * UNIT) && first.grow_to(3 * UNIT), "four are free");
        assert!(!first.grow_to(11 * UNIT), "there are ten in all");
        let mut second = budget.begin_call(&two, 4 * UNIT).await;
        assert!(!second.grow_to(4 * UNIT + 1), "none is free");
        let mut third = Box::pin(budget.begin_call(&three, 100 * UNIT));
        assert!((&mut third).now_or_never().is_none(), "all are in use");
        drop(first);
        assert!((&mut third).now_or_never().is_none(), "four are in use");
        drop(second);
        assert_eq!(third.await.taken.units, 10, "more than all is all");
    }

    #[tokio::test]
    async fn no_plugin_takes_all_places_nor_all_memory() {
        for (units, places, expected) in [(1, 32, [24, 6, 1]), (8, 1000, [24, 6, 1])] {
            let budget = budget(if places == 32 { 1000 } else { 256 }, places);
            let mut calls = Vec::new();
            for (number, expected) in expected.into_iter().enumerate() {
                let share = Arc::default();
                let before = calls.len();
                calls.extend(std::iter::from_fn(|| begun(budget.begin_call(&share, units * UNIT))));
                assert_eq!(calls.len() - before, expected, "plugin {number}");
            }
            drop(calls);
            assert_eq!(lock(&budget.state).free, budget.total);
        }
    }

    #[tokio::test]
    async fn memory_is_not_refused_for_want_of_places() {
        let budget = budget(100, 4);
        let [one, two, three] = std::array::from_fn(|_| Arc::<Share>::default());
        let mut calls = Vec::new();
        for share in [&one, &one, &two, &three] {
            calls.push(budget.begin_call(share, UNIT).await);
        }
        assert_eq!(lock(&budget.state).free.places, 0);
        assert!(calls.iter_mut().all(|call| call.grow_to(2 * UNIT)), "92 units are free");
        assert!(!calls.iter_mut().all(|call| call.grow_to(90 * UNIT)), "no plugin gets all");
    }

    #[tokio::test]
    async fn who_waits_for_its_first_call_is_not_overtaken() {
        let budget = budget(8, 8);
        let [busy, large] = std::array::from_fn(|_| Arc::<Share>::default());
        let first = budget.begin_call(&busy, UNIT).await;
        let mut waiting = Box::pin(budget.begin_call(&large, 8 * UNIT));
        assert!((&mut waiting).now_or_never().is_none(), "one is in use");
        assert!(begun(budget.begin_call(&busy, UNIT)).is_none(), "it was overtaken");
        drop(first);
        let large = waiting.await;
        let mut next = Box::pin(budget.begin_call(&busy, UNIT));
        assert!((&mut next).now_or_never().is_none(), "all are in use");
        drop(large);
        next.await;
    }

    #[tokio::test]
    async fn who_gives_up_leaves_the_line() {
        let budget = budget(8, 8);
        let [busy, large] = std::array::from_fn(|_| Arc::<Share>::default());
        let _first = budget.begin_call(&busy, UNIT).await;
        let mut waiting = Box::pin(budget.begin_call(&large, 8 * UNIT));
        assert!((&mut waiting).now_or_never().is_none(), "one is in use");
        let mut next = Box::pin(budget.begin_call(&busy, UNIT));
        assert!((&mut next).now_or_never().is_none(), "it was overtaken");
        drop(waiting);
        next.await;
    }

    #[tokio::test]
    async fn what_is_not_used_is_given_back_before_anybody_waits() {
        let unused: Arc<Mutex<Vec<Reservation>>> = Arc::default();
        let reclaim = {
            let unused = unused.clone();
            // Not under the lock of the list: who is woken looks at it.
            move || !std::mem::take(&mut *lock(&unused)).is_empty()
        };
        let budget = Arc::new(Budget::new(8 * UNIT, 8, Box::new(reclaim)));
        let [one, two] = std::array::from_fn(|_| Arc::<Share>::default());
        let mut first = budget.begin_call(&one, 8 * UNIT).await;
        first.shrink_to(6 * UNIT + 1);
        assert_eq!(lock(&budget.state).free.units, 1, "a part of a unit is a unit");
        lock(&unused).push(first);
        let mut second = budget.begin_call(&two, 4 * UNIT).await;
        assert!(lock(&unused).is_empty() && !budget.is_awaited());
        let third = budget.begin_call(&one, UNIT).await;
        lock(&unused).push(third);
        assert!(second.grow_to(8 * UNIT), "one is not used");
        let mut waiting = Box::pin(budget.begin_call(&one, UNIT));
        assert!((&mut waiting).now_or_never().is_none() && budget.is_awaited());
        drop(waiting);
        assert!(!budget.is_awaited());
    }

    #[test]
    fn what_a_plugin_needs_is_learned() {
        let need = Need::default();
        need.learn(64 << 20);
        assert_eq!(need.bytes(), 64 << 20);
        for _ in 0..100 {
            need.learn(1 << 20);
        }
        assert!(need.bytes() < (1 << 20) + 16, "{}", need.bytes());
        need.reserve_all(128 << 20);
        assert_eq!(need.bytes(), 128 << 20);
    }

    #[test]
    fn the_limit_of_a_container_is_read_in_both_versions_of_cgroups() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let file = folder.path().join("limit");
        for (text, expected) in [("536870912\n", Some(512 << 20)), ("max\n", None), ("9223372036854771712\n", None)] {
            std::fs::write(&file, text)?;
            assert_eq!(limit_in(&file), expected, "{text}");
        }
        std::fs::write(&file, "MemTotal:       24689764 kB\nMemFree: 1 kB\n")?;
        assert_eq!(total_in(&file), Some(24_689_764 << 10));
        assert_eq!(limit_in(&folder.path().join("none")), None);
        Ok(())
    }

    #[test]
    fn the_lowest_limit_around_a_process_counts() -> std::io::Result<()> {
        let folder = tempfile::tempdir()?;
        let root = folder.path();
        for (group, file, limit) in [
            ("", "memory.max", "max"),
            ("pod", "memory.max", "1000"),
            ("pod/container", "memory.max", "max"),
            ("memory", "memory.limit_in_bytes", "3000"),
            ("memory/pod", "memory.limit_in_bytes", "2000"),
        ] {
            std::fs::create_dir_all(root.join(group))?;
            std::fs::write(root.join(group).join(file), limit)?;
        }
        for (groups, expected) in [
            ("0::/pod/container\n", Some(1000)),
            ("0::/\n", None),
            ("4:memory:/pod\n3:cpu,cpuacct:/\n0::/\n", Some(2000)),
            ("4:memory:/kubepods/somewhere/else\n", Some(3000)),
            ("3:cpu:/pod\n", None),
            ("", None),
        ] {
            assert_eq!(limit_of_groups(groups, root), expected, "{groups}");
        }
        Ok(())
    }
}
