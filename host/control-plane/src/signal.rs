//! Signals by process id, for processes that this program did not start itself or does not want to end. The shell's
//! built-in `kill` is used because std has none and a `kill` program is not installed everywhere.

use anyhow::{Context, Result, bail};
use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

/// The signals that tests need.
#[derive(Clone, Copy, Debug)]
pub enum Signal {
    /// To end in good order.
    Terminate,
    /// To end at once, as in a crash.
    Kill,
    /// To stand still.
    Stop,
    /// To go on.
    Continue,
}

/// Sends `signal`.
///
/// # Errors
/// There is no such process.
pub fn send(pid: u32, signal: Signal) -> Result<()> {
    send_to(&pid.to_string(), signal)
}

/// Sends `signal` to all processes of a group, which has the id of the process that began it.
///
/// # Errors
/// There is no process in it.
pub fn send_to_group(group: u32, signal: Signal) -> Result<()> {
    send_to(&format!("-{group}"), signal)
}

fn send_to(target: &str, signal: Signal) -> Result<()> {
    let name = match signal {
        Signal::Terminate => "TERM",
        Signal::Kill => "KILL",
        Signal::Stop => "STOP",
        Signal::Continue => "CONT",
    };
    let status = Command::new("sh")
        .args(["-c", "kill -s \"$1\" -- \"$2\"", "sh", name, target])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .context("cannot run sh")?;
    if !status.success() {
        bail!("cannot send SIG{name} to {target}");
    }
    Ok(())
}

/// Waits until no thread of a process that got `Signal::Stop` runs any more. On a busy machine its threads go on for a while: the first
/// of them must run once more to see the signal.
///
/// # Errors
/// The process is gone.
pub async fn stopped(pid: u32) -> Result<()> {
    while !all_stopped(pid)? {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

fn all_stopped(pid: u32) -> Result<bool> {
    let tasks = format!("/proc/{pid}/task");
    for task in fs::read_dir(&tasks).with_context(|| format!("there is no process {pid}"))? {
        if !is_stopped(&task?.path())? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a thread is stopped (`T`) or has ended (`Z`, `X`, or no entry any more).
fn is_stopped(task: &Path) -> Result<bool> {
    let stat = match fs::read_to_string(task.join("stat")) {
        Ok(stat) => stat,
        // It ended after it was listed.
        Err(_) if !task.exists() => return Ok(true),
        Err(error) => return Err(error).with_context(|| format!("cannot read the state of {}", task.display())),
    };
    // The state follows the name of the program, which is in brackets and may have brackets and blanks in it.
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    Ok(matches!(state, Some('T' | 't' | 'Z' | 'X')))
}
