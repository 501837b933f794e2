//! The cache directory: one folder per Kubernetes version, shared by all projects of a user. A program is in it
//! completely or not at all; nothing is ever removed from it.

use crate::{Part, Report};
use anyhow::{Context, Result};
use std::env;
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

pub(crate) struct Cache {
    dir: PathBuf,
}

impl Cache {
    /// That of a version of Kubernetes.
    pub(crate) fn open(version: &str) -> Result<Self> {
        Self::at(root()?.join("control-plane").join(version))
    }

    pub(crate) fn at(dir: PathBuf) -> Result<Self> {
        fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        Ok(Cache { dir })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn path(&self, part: Part) -> PathBuf {
        self.dir.join(part.name())
    }

    /// A fresh directory to prepare something in, on the same file system as the cache.
    pub(crate) fn workspace(&self, name: &str) -> Result<PathBuf> {
        let dir = self.dir.join(format!("unfinished-{name}"));
        if dir.exists() {
            fs::remove_dir_all(&dir)?;
        }
        fs::create_dir_all(&dir)?;
        Ok(dir)
    }

    /// Moves a finished program into place.
    pub(crate) fn install(&self, part: Part, from: &Path) -> Result<()> {
        fs::set_permissions(from, Permissions::from_mode(0o755))?;
        fs::rename(from, self.path(part)).with_context(|| format!("cannot put {part} into {}", self.dir.display()))
    }

    /// Waits for its turn to fill the cache.
    pub(crate) async fn lock(&self, report: &Report) -> Result<File> {
        let path = self.dir.join("lock");
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
        let mut said = None;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::Error(error)) => {
                    return Err(error).context("cannot lock the cache");
                }
                Err(TryLockError::WouldBlock) => {}
            }
            if said.is_none_or(|at: Instant| at.elapsed() >= Duration::from_secs(10)) {
                report(&format!("another process is filling {}, waiting for it", self.dir.display()));
                said = Some(Instant::now());
            }
            // A file lock cannot be awaited without blocking a thread.
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

fn root() -> Result<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    set("PILOTHOUSE_CACHE")
        .or_else(|| Some(set("XDG_CACHE_HOME")?.join("pilothouse")))
        .or_else(|| Some(set("HOME")?.join(".cache/pilothouse")))
        .context("no place for the cache: set PILOTHOUSE_CACHE to a directory")
}
