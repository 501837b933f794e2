//! A control group that limits the memory of a process, as a container does. In both versions of cgroups.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicUsize, Ordering},
};

use anyhow::{Context, Result, ensure};

/// Where the memory of processes is limited, and the file with the limit: version 1, version 2.
const PLACES: [(&str, &str); 2] =
    [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")];

/// A control group. It is removed when this is dropped; its processes have ended by then.
#[derive(Debug)]
pub struct Cgroup {
    folder: PathBuf,
}

impl Cgroup {
    /// Whether this machine lets a test make one.
    pub fn is_possible() -> bool {
        Self::with_memory(1 << 30).is_ok()
    }

    /// A group whose processes may have so many bytes of memory together.
    ///
    /// # Errors
    /// If this machine does not let a test make one.
    pub fn with_memory(bytes: usize) -> Result<Self> {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let name = format!("pilothouse-test-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let is_there = |(root, _): &&(&str, &str)| Path::new(root).join("cgroup.procs").exists();
        let (root, limit) = PLACES.iter().find(is_there).context("there are no control groups for memory")?;
        let folder = Path::new(root).join(name);
        fs::create_dir(&folder).context("failed to make a control group")?;
        let group = Self { folder };
        let limit = group.folder.join(limit);
        ensure!(limit.exists(), "control groups here do not limit memory");
        fs::write(limit, bytes.to_string()).context("failed to limit the memory")?;
        Ok(group)
    }

    /// Its folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.folder) {
            eprintln!("failed to remove the control group '{}': {error}", self.folder.display());
        }
    }
}
