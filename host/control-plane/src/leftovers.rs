//! Processes that some other process started: those of a detached control plane, and those that a crashed one left.
//! An id from the state file is believed only if that process runs the part's program with this directory in its
//! arguments; any other process is left alone.

use crate::layout::Layout;
use crate::process::GRACE;
use crate::signal::{Signal, send};
use crate::state::State;
use crate::{Part, Report, wait};
use anyhow::{Result, bail};
use std::fs;
use std::path::Path;

/// Ends those that still run, last started first.
pub(crate) async fn stop(layout: &Layout, state: &State, report: &Report) -> Result<()> {
    for (&part, &pid) in state.pids.iter().rev() {
        if runs(layout, part, pid) {
            report(&format!("stopping {part} (process {pid})"));
            stop_one(layout, part, pid).await?;
        }
    }
    Ok(())
}

async fn stop_one(layout: &Layout, part: Part, pid: u32) -> Result<()> {
    for (signals, limit) in [(&[Signal::Terminate, Signal::Continue][..], GRACE), (&[Signal::Kill][..], GRACE)] {
        for signal in signals {
            if let Err(error) = send(pid, *signal)
                && runs(layout, part, pid)
            {
                return Err(error);
            }
        }
        let gone = wait::until(limit, async || Ok(!runs(layout, part, pid))).await?;
        if !gone.timed_out() {
            return Ok(());
        }
    }
    bail!("{part} (process {pid}) does not end")
}

/// Whether process `pid` is `part` of the control plane in this directory.
pub(crate) fn runs(layout: &Layout, part: Part, pid: u32) -> bool {
    // Empty for a process that has ended and only waits to be reaped.
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut arguments = command.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    let program = arguments.next().unwrap_or_default();
    let inside = format!("={}/", layout.root().display());
    Path::new(&*program).file_name().is_some_and(|name| name == part.name())
        && arguments.any(|argument| argument.contains(&inside))
}
