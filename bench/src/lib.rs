//! What the benchmarks share: a plugin's reconcile function linked natively, and a request as a busy host sees it.

pub mod native;
pub mod sample;
