//! `status`: what runs. It changes nothing.

use anyhow::Result;

use crate::{addresses::Addresses, files::Files, http, process, record::Record};

/// Prints a line per process; whether all of it is up.
///
/// # Errors
/// If the folder cannot be read.
pub async fn report(files: &Files) -> Result<bool> {
    let control_plane = pilothouse_control_plane::status(&files.control_plane()).await?;
    for part in &control_plane.parts {
        print(&part.part.to_string(), part.pid, part.ready);
    }
    let host = Record::load(files)?.filter(|host| process::is_host(host.pid, files));
    let ready = host.is_some() && is_ready(files).await;
    print("pilothouse", host.map(|host| host.pid), ready);
    Ok(control_plane.is_up() && ready)
}

async fn is_ready(files: &Files) -> bool {
    let Ok(addresses) = Addresses::load(files) else { return false };
    http::get(addresses.health, "/readyz").await.is_ok_and(|(status, _)| status == 200)
}

fn print(name: &str, pid: Option<u32>, ready: bool) {
    match pid {
        Some(pid) => println!("{name:<24} process {pid:<8} {}", if ready { "ready" } else { "not ready" }),
        None => println!("{name:<24} stopped"),
    }
}
