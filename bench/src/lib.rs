//! What the benchmarks share: a plugin's reconcile function linked natively, a request as a busy host sees it, a process and
//! times that are measured, the table of what was measured, and the limits that it must keep.

pub mod limits;
pub mod native;
pub mod process;
pub mod sample;
pub mod table;
pub mod times;

/// A number that the environment sets, or its default.
pub fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}
