//! What the benchmarks share: a plugin's reconcile function linked natively, a request as a busy host sees it, a process that
//! is measured, and the table of what was measured.

pub mod native;
pub mod process;
pub mod sample;
pub mod table;

/// A number that the environment sets, or its default.
pub fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

/// A quantile of sorted values; 0 of none.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = (sorted.len().saturating_sub(1) as f64 * share).round() as usize;
    sorted.get(place).copied().unwrap_or_default()
}
