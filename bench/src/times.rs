//! How long things take that are done one after the other.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::time::{sleep, timeout};

/// The rest between one and the next, as people leave it.
const REST: Duration = Duration::from_millis(20);

/// How long one may take.
const PATIENCE: Duration = Duration::from_secs(300);

/// Does something so many times; how long each took, in milliseconds, sorted.
///
/// # Errors
/// The first that failed, or took too long.
pub async fn one_by_one(times: usize, work: impl AsyncFn(usize) -> Result<Duration>) -> Result<Vec<f64>> {
    let mut took = Vec::new();
    for number in 0..times {
        let done = timeout(PATIENCE, work(number)).await;
        let done = done.with_context(|| format!("nothing came of number {number} within {PATIENCE:?}"))?;
        took.push(done?.as_secs_f64() * 1_000.0);
        sleep(REST).await;
    }
    took.sort_by(f64::total_cmp);
    Ok(took)
}

/// A quantile of sorted values; 0 of none.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = (sorted.len().saturating_sub(1) as f64 * share).round() as usize;
    sorted.get(place).copied().unwrap_or_default()
}
