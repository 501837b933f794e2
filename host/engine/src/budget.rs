//! The memory that all calls may have together. A call reserves what its plugin needed before, and waits for it with nothing in its
//! hands, so that no two calls wait for each other; what it needs beyond that it gets only if it is free.

use std::{
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The unit in which memory is counted: a page of WebAssembly.
const UNIT: usize = 64 << 10;

/// What a plugin reserves of which nothing is known yet.
const FIRST: usize = 2 << 20;

/// The part of a container's memory that calls may have. The rest is for the caches, compilation and what is on its way.
const PART_OF_CONTAINER: usize = 2;

/// The memory of all calls together.
pub(crate) struct Budget {
    free: Arc<Semaphore>,
    units: u32,
}

impl Budget {
    /// A budget of so many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        let units = u32::try_from(bytes / UNIT).unwrap_or(u32::MAX).max(1);
        Self { free: Arc::new(Semaphore::new(units as usize)), units }
    }

    /// Waits until so much memory is free, and takes it. More than there is in all counts as all of it.
    pub(crate) async fn reserve(&self, bytes: usize) -> Reservation {
        let units = units(bytes).min(self.units);
        // It fails only after `close`, which nobody calls.
        let permit = self.free.clone().acquire_many_owned(units).await.ok();
        Reservation { free: self.free.clone(), permit, units }
    }

    /// All of it, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.units as usize * UNIT
    }
}

/// The memory of one call. It is free again when this is dropped.
pub(crate) struct Reservation {
    free: Arc<Semaphore>,
    permit: Option<OwnedSemaphorePermit>,
    units: u32,
}

impl Reservation {
    /// Makes it so large, if that much is free. Does not wait: whoever waits while it holds something can wait for ever.
    pub(crate) fn grow_to(&mut self, bytes: usize) -> bool {
        let more = units(bytes).saturating_sub(self.units);
        if more == 0 {
            return true;
        }
        let Ok(taken) = self.free.clone().try_acquire_many_owned(more) else { return false };
        match &mut self.permit {
            Some(permit) => permit.merge(taken),
            None => self.permit = Some(taken),
        }
        self.units += more;
        true
    }
}

fn units(bytes: usize) -> u32 {
    u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX)
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
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limit = limit_of_groups(&groups, Path::new("/sys/fs/cgroup"));
    let limit = limit.into_iter().chain(total_in(Path::new("/proc/meminfo"))).min();
    limit.map_or(usize::MAX, |limit| limit / PART_OF_CONTAINER)
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

    #[tokio::test]
    async fn a_call_gets_what_is_free_and_waits_only_with_empty_hands() {
        let budget = Budget::new(10 * UNIT);
        let mut first = budget.reserve(4 * UNIT).await;
        assert!(first.grow_to(6 * UNIT) && first.grow_to(3 * UNIT), "four are free");
        assert!(!first.grow_to(11 * UNIT), "there are ten in all");
        let mut second = budget.reserve(4 * UNIT).await;
        assert!(!second.grow_to(4 * UNIT + 1), "none is free");
        let mut third = Box::pin(budget.reserve(100 * UNIT));
        assert!((&mut third).now_or_never().is_none(), "all are in use");
        drop(first);
        assert!((&mut third).now_or_never().is_none(), "four are in use");
        drop(second);
        assert_eq!(third.await.units, 10, "more than all is all");
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
