//! Where the host serves its HTTP: free ports, told by the first line of its log. It opens no connection.

use std::{fs, net::SocketAddr};

use anyhow::{Context, Result};

use crate::files::Files;

/// The host's addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Where /healthz and /readyz answer.
    pub health: SocketAddr,
    /// Where /metrics answers.
    pub metrics: SocketAddr,
}

impl Addresses {
    /// The addresses of the host that writes this folder's log.
    ///
    /// # Errors
    /// If the log does not have them yet. Quotes the log.
    pub fn load(files: &Files) -> Result<Self> {
        let log = fs::read_to_string(files.log()).context("failed to read the host's log")?;
        Self::read(&log).with_context(|| format!("the host's log tells no addresses: {log}"))
    }

    fn read(log: &str) -> Option<Self> {
        let line = log.lines().find(|line| line.contains("pilothouse") && line.contains("starts"))?;
        let field = |name| line.split_whitespace().find_map(|word| word.strip_prefix(name))?.parse().ok();
        Some(Self { health: field("health=")?, metrics: field("metrics=")? })
    }
}

#[cfg(test)]
mod tests {
    use super::Addresses;

    #[test]
    fn the_first_line_tells_the_addresses() {
        let log = "2026-01-01T00:00:00Z  INFO pilothouse 0.1.0 starts api_server=\"https://x/\" \
                   health=127.0.0.1:1 metrics=127.0.0.1:2\n";
        let ports = Addresses::read(log).map(|addresses| (addresses.health.port(), addresses.metrics.port()));
        assert_eq!(ports, Some((1, 2)));
        assert_eq!(Addresses::read(""), None);
    }
}
