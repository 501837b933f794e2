//! What the benchmarks share: a plugin's reconcile function linked natively, a request as a busy host sees it, a process and
//! times that are measured, and the table of what was measured.

pub mod native;
pub mod process;
pub mod sample;
pub mod table;
pub mod times;

/// A number that the environment sets, or its default.
pub fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}
