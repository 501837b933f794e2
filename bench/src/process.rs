//! A process that is measured: what it uses, and its end. It is never left behind.

use std::{
    process::{Child, ChildStdout, Command},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
pub use pilothouse_tests::process::memory;
use pilothouse_tests::wait::{Look, eventually};
use rustix::process::{Pid, Signal, kill_process};
use tokio::time::sleep;

/// Clock ticks per second of `/proc/PID/stat`: fixed on Linux.
const TICKS: f64 = 100.0;

/// A running process.
pub struct Process(Child);

impl Process {
    /// Starts a command.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(command: &mut Command) -> Result<Self> {
        Ok(Self(command.spawn().with_context(|| format!("failed to start {command:?}"))?))
    }

    /// What it prints, if the command pipes that; once.
    pub fn output(&mut self) -> Option<ChildStdout> {
        self.0.stdout.take()
    }

    /// Ends it with SIGTERM.
    ///
    /// # Errors
    /// It ends badly.
    pub fn stop(mut self) -> Result<()> {
        self.end()
    }

    /// Ends it with SIGTERM, where it is to be replaced by another one.
    ///
    /// # Errors
    /// It ends badly.
    pub fn end(&mut self) -> Result<()> {
        kill_process(Pid::from_child(&self.0), Signal::TERM)?;
        ensure!(self.0.wait()?.success(), "the process ended badly");
        Ok(())
    }

    /// Its process ID.
    pub fn pid(&self) -> u32 {
        self.0.id()
    }

    /// The time of processors that it has used, in seconds.
    ///
    /// # Errors
    /// It is gone.
    pub fn cpu(&self) -> Result<f64> {
        cpu(self.0.id())
    }

    /// Its memory, and the most it had, in MiB.
    ///
    /// # Errors
    /// It is gone.
    pub fn memory(&self) -> Result<(f64, f64)> {
        memory(self.0.id())
    }
}

impl Drop for Process {
    /// After [`Process::stop`] it has ended, and both calls find nothing to do.
    fn drop(&mut self) {
        if let Err(error) = self.0.kill().and_then(|()| self.0.wait()) {
            eprintln!("failed to end process {}: {error}", self.0.id());
        }
    }
}

/// How long it is looked at whether processes are at rest.
const LOOK: Duration = Duration::from_secs(1);

/// Waits until each of these processes uses less than its share of a processor.
///
/// # Errors
/// One is gone, or does not come to rest within that time.
pub async fn until_at_rest(within: Duration, processes: &[(u32, f64)]) -> Result<()> {
    let used = || processes.iter().map(|(pid, _)| cpu(*pid)).collect::<Result<Vec<_>>>();
    eventually(within, "all processes to be at rest", async || {
        let (before, at) = (used()?, Instant::now());
        sleep(LOOK).await;
        let seconds = at.elapsed().as_secs_f64();
        let shares: Vec<_> = used()?.iter().zip(before).map(|(after, before)| (after - before) / seconds).collect();
        let are_at_rest = shares.iter().zip(processes).all(|(share, (_, most))| share < most);
        Ok(Look::of(are_at_rest, shares))
    })
    .await
}

/// The time of processors that a process has used, in seconds.
///
/// # Errors
/// It is gone.
pub fn cpu(pid: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"))?;
    // The name, in parentheses, may hold spaces.
    let fields: Vec<_> = stat.rsplit_once(") ").context("a malformed stat")?.1.split(' ').collect();
    let ticks = |field: usize| anyhow::Ok(fields.get(field).context("no such field")?.parse::<f64>()?);
    Ok((ticks(11)? + ticks(12)?) / TICKS)
}
