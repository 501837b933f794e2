//! What one call may use. Every limit is on by default, and the same in the host and offline.

use std::time::Duration;

/// The limits of one call. All are enforced by the engine; none can be lifted by a plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// Bytes of all linear memories of the instance together. 128 MiB.
    pub memory_bytes: usize,
    /// Elements of one table. 100,000.
    pub table_elements: usize,
    /// Core instances, memories and tables in one component, each. 100.
    pub instances: usize,
    /// Computing time, in steps of [`Limits::SLICE`]: a call that computes longer is ended. 1 s.
    pub cpu: Duration,
    /// Time from the start of the call to its end, waiting for its turn included. 10 s.
    pub wall: Duration,
    /// Bytes that may cross from the plugin to the host in the response or one import call. 1 MiB.
    pub output_bytes: usize,
    /// Bytes of log lines, standard output and standard error of one call; the rest is cut. 16 KiB.
    pub log_bytes: usize,
    /// Lookups of one call. 1,000.
    pub lookups: usize,
    /// Resource handles alive at once. 1,000.
    pub handles: usize,
}

impl Limits {
    /// How long a call computes before it lets others run.
    pub const SLICE: Duration = Duration::from_millis(5);

    /// How many slices [`Limits::cpu`] is, at least one.
    pub(crate) fn slices(&self) -> u64 {
        (self.cpu.as_micros() / Self::SLICE.as_micros()).max(1).try_into().unwrap_or(u64::MAX)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory_bytes: 128 << 20,
            table_elements: 100_000,
            instances: 100,
            cpu: Duration::from_secs(1),
            wall: Duration::from_secs(10),
            output_bytes: 1 << 20,
            log_bytes: 16 << 10,
            lookups: 1_000,
            handles: 1_000,
        }
    }
}
