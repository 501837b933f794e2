//! The limits of a call. All are on by default, and they are the same in the host and offline. Enforced elsewhere.

use std::time::Duration;

/// The limits of one call. The engine enforces all of them; a plugin cannot change any.
#[derive(Clone, Debug, PartialEq)]
pub struct Limits {
    /// The bytes of all linear memories of the instance together. 128 MiB.
    pub memory_bytes: usize,
    /// Elements of one table. 100,000.
    pub table_elements: usize,
    /// Core instances, memories and tables in one component, each. 100.
    pub instances: usize,
    /// Computing time, in steps of [`Limits::SLICE`]. 1 s.
    pub cpu: Duration,
    /// Wall-clock time of the call, including the wait for an instance. 10 s.
    pub wall: Duration,
    /// The bytes that the plugin may pass to the host, in the response or in one import call. 1 MiB.
    pub output_bytes: usize,
    /// The bytes of log lines, standard output and standard error; the rest is cut. 16 KiB.
    pub log_bytes: usize,
    /// The bytes that the lookups of one call may find, all together. 8 MiB.
    pub lookup_bytes: usize,
    /// The bytes of the lookups of one call themselves, all together: names, selectors, fields. The host remembers them. 1 MiB.
    pub query_bytes: usize,
    /// Lookups of one call. 1,000.
    pub lookups: usize,
    /// Resource handles alive at once. 1,000.
    pub handles: usize,
    /// The calls that an instance answers, where the plugin's manifest lets it answer several. As many as the manifest says.
    pub calls_per_instance: u32,
}

impl Limits {
    /// How long a call computes before it yields to others.
    pub const SLICE: Duration = Duration::from_millis(5);

    /// The number of slices in [`Limits::cpu`], at least one.
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
            lookup_bytes: 8 << 20,
            query_bytes: 1 << 20,
            lookups: 1_000,
            handles: 1_000,
            calls_per_instance: u32::MAX,
        }
    }
}
