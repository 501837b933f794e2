//! Free ports on the loopback interface, one per listener. Ports are found free, not held: somebody may take one
//! before its part binds it, which the start notices and repeats.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::net::Ipv4Addr;
use tokio::net::TcpSocket;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ports {
    pub(crate) etcd: u16,
    pub(crate) etcd_peer: u16,
    pub(crate) api_server: u16,
    pub(crate) controller_manager: u16,
    pub(crate) scheduler: u16,
    pub(crate) kwok: u16,
}

impl Ports {
    pub(crate) fn choose() -> Result<Self> {
        let mut taken = BTreeSet::new();
        let mut next = || another_free_port(&mut taken);
        Ok(Ports {
            etcd: next()?,
            etcd_peer: next()?,
            api_server: next()?,
            controller_manager: next()?,
            scheduler: next()?,
            kwok: next()?,
        })
    }

    /// The same ports as before, so that kubeconfigs handed out stay right, unless one is no longer free.
    pub(crate) fn again_or_choose(before: Option<Ports>) -> Result<Self> {
        match before {
            Some(ports) if ports.all().into_iter().all(is_free) => Ok(ports),
            _ => Self::choose(),
        }
    }

    fn all(&self) -> [u16; 6] {
        [self.etcd, self.etcd_peer, self.api_server, self.controller_manager, self.scheduler, self.kwok]
    }
}

/// A free port for a program that cannot choose one itself. It is below the range from which the kernel serves outgoing connections: one
/// from inside that range (what binding port 0 gives) can be taken by any client, even by one that is retrying to reach a stopped server.
///
/// # Errors
/// If none is free.
pub fn free_port() -> Result<u16> {
    another_free_port(&mut BTreeSet::new())
}

/// Several free ports that differ.
///
/// # Errors
/// As [`free_port`].
pub fn free_ports(count: usize) -> Result<Vec<u16>> {
    let mut taken = BTreeSet::new();
    (0..count).map(|_| another_free_port(&mut taken)).collect()
}

fn another_free_port(taken: &mut BTreeSet<u16>) -> Result<u16> {
    const LOWEST: u16 = 10_000;
    let count = u64::from(first_ephemeral_port().saturating_sub(LOWEST).max(1));
    for attempt in 0..2_000u32 {
        let offset = RandomState::new().hash_one(attempt) % count;
        let port = LOWEST + u16::try_from(offset)?;
        if is_free(port) && taken.insert(port) {
            return Ok(port);
        }
    }
    bail!("no free port between {LOWEST} and {} on 127.0.0.1", first_ephemeral_port())
}

fn first_ephemeral_port() -> u16 {
    fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range")
        .ok()
        .and_then(|range| range.split_whitespace().next()?.parse().ok())
        .filter(|first| *first > 12_000)
        .unwrap_or(32_768)
}

/// Binds without listening: a process started meanwhile by another thread holds a copy of the socket for a moment,
/// and a copy that listens would keep the port from its part.
fn is_free(port: u16) -> bool {
    let bind = |socket: TcpSocket| {
        socket.set_reuseaddr(true)?;
        socket.bind((Ipv4Addr::LOCALHOST, port).into())
    };
    TcpSocket::new_v4().and_then(bind).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn chosen_ports_differ_and_stay_while_free() -> Result<()> {
        let ports = Ports::choose()?;
        assert_eq!(ports.all().into_iter().collect::<BTreeSet<_>>().len(), 6);
        assert_eq!(Ports::again_or_choose(Some(ports.clone()))?, ports);

        let _held = TcpListener::bind((Ipv4Addr::LOCALHOST, ports.kwok))?;
        assert_ne!(Ports::again_or_choose(Some(ports.clone()))?, ports);
        Ok(())
    }
}
