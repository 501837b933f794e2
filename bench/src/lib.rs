//! What the benchmarks share: a plugin's reconcile function linked natively, a request as a busy host sees it, a process and
//! times that are measured, the table of what was measured, and the limits that it must keep.

use pilothouse_tests::artifacts;

pub mod limits;
pub mod native;
pub mod process;
pub mod sample;
pub mod table;
pub mod times;

/// Whether a benchmark is to run: `cargo test --benches` only asks whether it can be run.
pub fn is_asked_for() -> bool {
    std::env::args().any(|argument| argument == "--bench")
}

/// Whether a benchmark of a built host is to run. Without one, it says which command builds it.
pub fn has_host(benchmark: &str) -> bool {
    if !is_asked_for() {
        return false;
    }
    let host = artifacts::host_binary();
    if let Err(missing) = &host {
        eprintln!("{benchmark}: left out; `make bench-{benchmark}` runs it: {missing:#}");
    }
    host.is_ok()
}

/// A number that the environment sets, or its default.
pub fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}
