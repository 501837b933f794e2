//! The TCP sockets of a process, as the kernel has them. Opens none.

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, Result};

/// The states of a socket, as `/proc/net/tcp` has them.
const ESTABLISHED: &str = "01";
const LISTENING: &str = "0A";

/// The TCP ports of a process.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ports {
    /// Those that it listens on.
    pub listening: BTreeSet<u16>,
    /// Those of others that it has reached.
    pub reached: BTreeSet<u16>,
}

/// The TCP ports of a process, in its own network.
///
/// # Errors
/// If it does not run, or the kernel says something else than expected.
pub fn ports(pid: u32) -> Result<Ports> {
    let folder = Path::new("/proc").join(pid.to_string());
    let own = inodes(&folder)?;
    let mut ports = Ports::default();
    for table in ["net/tcp", "net/tcp6"] {
        for line in fs::read_to_string(folder.join(table))?.lines().skip(1) {
            let words: Vec<_> = line.split_whitespace().collect();
            let [_, local, remote, state, _, _, _, _, _, inode, ..] = words[..] else { continue };
            match state {
                _ if !own.contains(inode) => {}
                LISTENING => drop(ports.listening.insert(port(local)?)),
                // What reaches this process is at a port of its own.
                ESTABLISHED => drop(ports.reached.insert(port(remote)?)),
                _ => {}
            }
        }
    }
    Ok(ports)
}

/// The sockets that a process has open.
fn inodes(folder: &Path) -> Result<BTreeSet<String>> {
    let links = fs::read_dir(folder.join("fd"))?.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    let inode = |link: std::path::PathBuf| {
        let link = link.to_str()?.strip_prefix("socket:[")?;
        Some(link.strip_suffix(']')?.to_owned())
    };
    Ok(links.filter_map(inode).collect())
}

/// The port of an address: hexadecimal digits after a colon.
fn port(address: &str) -> Result<u16> {
    let (_, port) = address.rsplit_once(':').context("an address without a port")?;
    u16::from_str_radix(port, 16).context("a port that is no number")
}
