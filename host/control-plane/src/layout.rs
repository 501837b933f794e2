//! Where everything lies inside a control plane's directory. The only file that knows the names.
//! Nothing outside the directory is ever written.

use crate::Part;
use anyhow::{Context, Result, bail};
use std::fs::{self, File, OpenOptions, Permissions, TryLockError};
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

#[derive(Clone, Debug)]
pub(crate) struct Layout {
    root: PathBuf,
}

impl Layout {
    /// Makes the directory, readable by its owner only, because it holds keys and tokens. A directory that has
    /// something else in it is refused: data in it is going to be removed.
    pub(crate) fn create(dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let layout = Self::absolute(dir)?;
        if !layout.is_ours() && fs::read_dir(dir)?.next().is_some() {
            bail!("{} is not empty and holds no control plane: choose another directory", dir.display());
        }
        OpenOptions::new().create(true).append(true).open(layout.lock_file())?;
        fs::set_permissions(&layout.root, Permissions::from_mode(0o700))?;
        for sub in ["logs", "pki", "stages"] {
            fs::create_dir_all(layout.root.join(sub))?;
        }
        Ok(layout)
    }

    /// A directory made by `create`.
    pub(crate) fn find(dir: &Path) -> Result<Self> {
        let layout = Self::absolute(dir)?;
        if !layout.is_ours() {
            bail!("{} holds no control plane", dir.display());
        }
        Ok(layout)
    }

    /// Free of symlinks, because command lines are compared with it to recognise processes.
    fn absolute(dir: &Path) -> Result<Self> {
        let root = dir.canonicalize().with_context(|| format!("no directory {}", dir.display()))?;
        Ok(Layout { root })
    }

    /// The lock file is made first and never removed, so it also marks the directory as ours.
    fn is_ours(&self) -> bool {
        self.lock_file().is_file()
    }

    fn lock_file(&self) -> PathBuf {
        self.root.join("control-plane.lock")
    }

    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn etcd_data(&self) -> PathBuf {
        self.root.join("etcd")
    }

    pub(crate) fn log(&self, part: Part) -> PathBuf {
        self.root.join("logs").join(format!("{part}.log"))
    }

    pub(crate) fn audit_log(&self) -> PathBuf {
        self.root.join("logs/audit.jsonl")
    }

    pub(crate) fn audit_policy(&self) -> PathBuf {
        self.root.join("audit-policy.json")
    }

    pub(crate) fn tokens(&self) -> PathBuf {
        self.root.join("tokens.csv")
    }

    pub(crate) fn state(&self) -> PathBuf {
        self.root.join("state.json")
    }

    pub(crate) fn pki(&self, file: &str) -> PathBuf {
        self.root.join("pki").join(file)
    }

    pub(crate) fn stage(&self, file: &str) -> PathBuf {
        self.root.join("stages").join(file)
    }

    /// The administrator's is plain `kubeconfig`, as people expect it.
    pub(crate) fn kubeconfig(&self, user: &str) -> PathBuf {
        match user {
            crate::ADMIN => self.root.join("kubeconfig"),
            other => self.root.join(format!("kubeconfig-{other}")),
        }
    }

    /// Logs of an earlier run would be quoted in messages about this one.
    pub(crate) fn clear_logs(&self) -> Result<()> {
        for entry in fs::read_dir(self.root.join("logs"))? {
            fs::remove_file(entry?.path())?;
        }
        Ok(())
    }

    pub(crate) fn remove_etcd_data(&self) -> Result<()> {
        match fs::remove_dir_all(self.etcd_data()) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error.into()),
            _ => Ok(()),
        }
    }

    /// Held while the directory is being changed; freed by the kernel when its holder dies.
    pub(crate) fn lock(&self) -> Result<File> {
        let path = self.lock_file();
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(&path)?;
        match file.try_lock() {
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => {
                bail!("another process runs a control plane in {}", self.root.display())
            }
            Err(TryLockError::Error(error)) => Err(error).with_context(|| format!("cannot lock {}", path.display())),
        }
    }
}

/// Writes a file that only its owner can read.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<()> {
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(path)
        .with_context(|| format!("cannot write {}", path.display()))?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())?;
    Ok(())
}
