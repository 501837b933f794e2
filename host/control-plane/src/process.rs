//! One running part that this process started. Its output goes to its log. It is killed when dropped, unless it was
//! detached; it never outlives its owner by accident.

use crate::signal::{Signal, send};
use crate::{Part, wait};
use anyhow::{Context, Result};
use std::fs::{self, OpenOptions};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// How long a part may take to end in good order.
pub(crate) const GRACE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Process {
    part: Part,
    pid: u32,
    /// None once detached. A std child, because it belongs to no tokio runtime: tests share one control plane
    /// between runtimes that come and go.
    child: Option<Child>,
}

impl Process {
    /// Starts `program` in a process group of its own, so that Ctrl-C at a terminal reaches only the owner, which
    /// then ends its parts in the right order.
    pub(crate) fn spawn(part: Part, program: &Path, arguments: &[String], log: &Path) -> Result<Self> {
        let output = OpenOptions::new().create(true).append(true).open(log)?;
        let child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(0)
            .spawn()
            .with_context(|| format!("cannot start {part} ({})", program.display()))?;
        Ok(Process { part, pid: child.id(), child: Some(child) })
    }

    pub(crate) fn part(&self) -> Part {
        self.part
    }

    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// How it ended, if it has.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.as_mut().map_or(Ok(None), |child| Ok(child.try_wait()?))
    }

    /// Asks it to end, waits, and kills it when it takes too long.
    pub(crate) async fn stop(mut self) -> Result<()> {
        if self.ended()?.is_none() {
            send(self.pid, Signal::Terminate)?;
            // A paused process sees the first signal only after the second.
            send(self.pid, Signal::Continue)?;
        }
        if wait::until(GRACE, async || Ok(self.ended()?.is_some())).await?.timed_out() {
            self.kill()?;
        }
        Ok(())
    }

    /// Ends it at once, as a crash would.
    pub(crate) fn kill(&mut self) -> Result<()> {
        if let Some(child) = self.child.as_mut() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// Lets it run on without this process.
    pub(crate) fn detach(mut self) {
        self.child = None;
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Err(error) = self.kill() {
            eprintln!("control-plane: cannot kill {} (process {}): {error:#}", self.part, self.pid);
        }
    }
}

/// The last lines of a log, for messages.
pub(crate) fn tail(log: &Path) -> String {
    const LINES: usize = 20;
    let bytes = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(LINES)..].join("\n")
}
