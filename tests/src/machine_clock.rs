//! The clock of the machine that a host runs on, as the host sees it: set by a test, while the real one stays as it is. Needs a C compiler,
//! which the build of the host needs, too, and a host that is linked to the C library.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::PathBuf,
    process::Command,
};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

use crate::artifacts;

/// A clock that can be set.
pub struct MachineClock {
    folder: TempDir,
    seconds_ahead: File,
}

impl MachineClock {
    /// A clock that is right.
    ///
    /// # Errors
    /// If there is no C compiler.
    pub fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let source = artifacts::repository().join("tests/src/machine_clock.c");
        let mut compiler = Command::new("cc");
        compiler.args(["-shared", "-fPIC", "-O1", "-o"]).arg(folder.path().join("clock.so")).arg(source);
        let ended = compiler.output().context("failed to run the C compiler")?;
        ensure!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
        let path = folder.path().join("ahead");
        fs::write(&path, 0_i64.to_ne_bytes())?;
        let seconds_ahead = File::options().write(true).open(path)?;
        Ok(Self { folder, seconds_ahead })
    }

    /// Sets the clock, to so many seconds after the real time.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn set_ahead(&self, seconds: i64) -> Result<()> {
        Ok(self.seconds_ahead.write_all_at(&seconds.to_ne_bytes(), 0)?)
    }

    /// The variables with which a process has this clock.
    pub fn variables(&self) -> Vec<(&'static str, PathBuf)> {
        let path = |name| self.folder.path().join(name);
        vec![("LD_PRELOAD", path("clock.so")), ("MACHINE_CLOCK", path("ahead"))]
    }
}
