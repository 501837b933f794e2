//! What some tests need, and not each machine has. Where it is missing, they are shown as ignored. Nothing is changed.

use std::process::{Command, Stdio};

use anyhow::{Result, ensure};

use crate::{third_party::Program, thoroughness::Thoroughness};

/// A program of another project that takes minutes to build: that it is there, or that all is asked for. `command` builds it.
///
/// # Errors
/// If it is not there and nobody has asked for it.
pub fn program(program: &Program, command: &str) -> Result<()> {
    let is_asked_for = program.is_built() || Thoroughness::of_run() == Thoroughness::All;
    ensure!(is_asked_for, "{} is not built; see {command}", program.name());
    Ok(())
}

/// A kubectl.
///
/// # Errors
/// If there is none.
pub fn kubectl() -> Result<()> {
    ensure!(runs("kubectl", &["version", "--client"]), "there is no kubectl on this machine");
    Ok(())
}

/// That a process may have mounts of its own without being root.
///
/// # Errors
/// If it may not.
pub fn own_mounts() -> Result<()> {
    let mounts = runs("unshare", &["--map-root-user", "--mount", "mount", "-t", "tmpfs", "none", "/var/run"]);
    ensure!(mounts, "this machine lets nobody but root have mounts of their own");
    Ok(())
}

/// That a process may have a network of its own without being root.
///
/// # Errors
/// If it may not.
pub fn own_network() -> Result<()> {
    let network = runs("unshare", &["--map-root-user", "--net", "true"]);
    ensure!(network, "this machine lets nobody but root have a network of their own");
    Ok(())
}

/// Whether a command succeeds.
fn runs(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}
