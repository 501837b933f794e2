//! `down`: stops the host, then the control plane. Only processes of this folder.

use anyhow::Result;

use crate::{files::Files, process, record::Record, say};

/// Runs the command.
///
/// # Errors
/// If a process does not stop.
pub async fn down(files: &Files) -> Result<()> {
    let _lock = files.lock()?;
    if let Some(host) = Record::load(files)?.filter(|host| process::is_host(host.pid, files)) {
        say(&format!("host: stopping process {}", host.pid));
        process::stop(host.pid, files).await?;
    }
    Record::remove(files)?;
    if files.control_plane().is_dir() {
        pilothouse_control_plane::down(&files.control_plane(), say).await?;
    }
    say("nothing runs");
    Ok(())
}
