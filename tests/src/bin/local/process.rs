//! The host as a process of its own session: started, recognised, ended. An id is believed only if that process is a
//! host with this folder's plugin directory; any other process is left alone.

use std::{
    fs::{self, File},
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context, Result, anyhow, bail};
use pilothouse_tests::wait::{Look, eventually};

use crate::files::Files;

/// The time limit for the host to finish its work in progress and end.
const GRACE: Duration = Duration::from_secs(40);

/// How long a process may take to become the host.
const BEGIN: Duration = Duration::from_secs(10);

/// Starts a host that outlives this program and its terminal. The old log is kept once. The process is to be trusted as
/// the host only after [`began`].
///
/// # Errors
/// If it cannot be started.
pub fn start(binary: &Path, kubeconfig: &Path, files: &Files) -> Result<Child> {
    if files.log().exists() {
        fs::rename(files.log(), files.previous_log())?;
    }
    let log = File::create(files.log()).context("failed to make the host's log")?;
    // Not the leader of a process group yet, so setsid becomes the host without another process in between.
    let mut command = Command::new("setsid");
    command.arg(binary).arg("run").arg("--plugins").arg(files.plugins()).arg("--kubeconfig").arg(kubeconfig);
    command.args(["--health-address", "127.0.0.1:0", "--metrics-address", "127.0.0.1:0", "--log-format", "text"]);
    command.arg("--cache-dir").arg(files.compiled());
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    command.spawn().context("failed to run setsid")
}

/// Waits until the process has become the host. Until then its command line is setsid's, or nothing for a moment.
///
/// # Errors
/// If it ended instead.
pub async fn began(child: &mut Child, files: &Files) -> Result<()> {
    eventually(BEGIN, "the host to begin", async || {
        let ended = child.try_wait()?;
        Ok(match ended {
            Some(status) => Look::Found(Err(anyhow!("the host ended at once: {status}"))),
            None if is_host(child.id(), files) => Look::Found(Ok(())),
            None => Look::NotYet("it is not the host yet".to_owned()),
        })
    })
    .await?
}

/// Whether a process is the host of this folder.
pub fn is_host(pid: u32, files: &Files) -> bool {
    // Empty for a process that has ended and only waits to be reaped.
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let arguments: Vec<_> = command.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
    let is_program = |name: &str| Path::new(name).file_name().is_some_and(|name| name == "pilothouse");
    let plugins = files.plugins();
    arguments.first().is_some_and(|name| is_program(name))
        && arguments.windows(2).any(|pair| pair[0] == "--plugins" && Path::new(&*pair[1]) == plugins)
}

/// Ends the host gracefully; kills it when it takes too long.
///
/// # Errors
/// If it does not end at all.
pub async fn stop(pid: u32, files: &Files) -> Result<()> {
    for signal in ["TERM", "KILL"] {
        if !is_host(pid, files) {
            return Ok(());
        }
        send(signal, pid)?;
        let ended = async || Ok(Look::of(!is_host(pid, files), "it runs"));
        if eventually(GRACE, "the host to end", ended).await.is_ok() {
            return Ok(());
        }
    }
    bail!("the host (process {pid}) does not end")
}

/// The shell's own `kill`: a program of that name is not installed everywhere.
fn send(signal: &str, pid: u32) -> Result<()> {
    let script = r#"kill -s "$1" "$2""#;
    let status = Command::new("sh").args(["-c", script, "sh", signal, &pid.to_string()]).status();
    if !status.context("failed to run sh")?.success() {
        bail!("failed to send SIG{signal} to process {pid}");
    }
    Ok(())
}
