//! The paths of all files in the folder. No other file knows their names.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};

/// A folder of `up`.
pub struct Files {
    root: PathBuf,
}

impl Files {
    /// The folder, made where it is missing.
    ///
    /// # Errors
    /// If it cannot be made.
    pub fn create(folder: &Path) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("failed to make '{}'", folder.display()))?;
        let files = Self::at(folder)?;
        for folder in [files.plugins(), files.installed()] {
            fs::create_dir_all(&folder).with_context(|| format!("failed to make '{}'", folder.display()))?;
        }
        Ok(files)
    }

    /// The folder, if there is one.
    ///
    /// # Errors
    /// If it cannot be looked at.
    pub fn find(folder: &Path) -> Result<Option<Self>> {
        folder.is_dir().then(|| Self::at(folder)).transpose()
    }

    /// Free of symlinks, because command lines are compared with it to recognise the host.
    fn at(folder: &Path) -> Result<Self> {
        let root = folder.canonicalize().with_context(|| format!("no folder '{}'", folder.display()))?;
        Ok(Self { root })
    }

    /// Waits until no other `up` or `down` works in this folder, and keeps others out until it is dropped.
    ///
    /// # Errors
    /// If files cannot be locked.
    pub fn lock(&self) -> Result<File> {
        let file = File::create(self.root.join("lock")).context("failed to make the lock file")?;
        file.lock().context("failed to lock the folder")?;
        Ok(file)
    }

    /// The control plane's own folder.
    pub fn control_plane(&self) -> PathBuf {
        self.root.join("control-plane")
    }

    /// The plugin directory.
    pub fn plugins(&self) -> PathBuf {
        self.root.join("plugins")
    }

    /// Copies of the plugins that `up` installed, to tell them from those of the user.
    pub fn installed(&self) -> PathBuf {
        self.root.join("installed")
    }

    /// Compiled plugins.
    pub fn compiled(&self) -> PathBuf {
        self.root.join("compiled")
    }

    /// The host's log.
    pub fn log(&self) -> PathBuf {
        self.root.join("host.log")
    }

    /// The log of the host before this one.
    pub fn previous_log(&self) -> PathBuf {
        self.root.join("host.log.previous")
    }

    /// What is remembered about the host.
    pub fn record(&self) -> PathBuf {
        self.root.join("host.json")
    }
}
