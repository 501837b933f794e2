//! Names host processes. Knows nothing about them.

use std::fmt;

/// The identity of a host process: which one, and how often it was started before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostId {
    /// Which host.
    pub host: usize,
    /// The number of its starts before.
    pub start: u32,
}

impl fmt::Display for HostId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host-{}.{}", self.host, self.start)
    }
}
