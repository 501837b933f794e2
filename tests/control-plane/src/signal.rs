//! Signals by process id, for processes that this program did not start itself or does not want to end. The shell's
//! built-in `kill` is used because std has none and a `kill` program is not installed everywhere.

use anyhow::{Context, Result, bail};
use std::process::{Command, Stdio};

#[derive(Clone, Copy, Debug)]
pub(crate) enum Signal {
    Terminate,
    Kill,
    Stop,
    Continue,
}

/// Sends `signal`; an error when there is no such process.
pub(crate) fn send(pid: u32, signal: Signal) -> Result<()> {
    let name = match signal {
        Signal::Terminate => "TERM",
        Signal::Kill => "KILL",
        Signal::Stop => "STOP",
        Signal::Continue => "CONT",
    };
    let status = Command::new("sh")
        .args(["-c", "kill -s \"$1\" \"$2\"", "sh", name, &pid.to_string()])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("cannot run sh")?;
    if !status.success() {
        bail!("cannot send SIG{name} to process {pid}");
    }
    Ok(())
}
