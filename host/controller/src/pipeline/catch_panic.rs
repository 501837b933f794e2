//! Keeps the host alive if one reconcile panics. A panic is a bug of the host; the reconciles of other objects continue.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;

/// Runs a future to its end.
///
/// Unwind safety is asserted because all shared state (caches, queue, object states) changes under locks of its own, each change
/// in one step, so a panic cannot leave it inconsistent.
///
/// # Errors
/// The message of the panic.
pub async fn catch_panic<T>(work: impl Future<Output = T>) -> Result<T, String> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|panic| {
        let said = panic.downcast_ref::<String>().cloned();
        said.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    #[allow(clippy::panic, reason = "the test is about panics")]
    async fn a_panic_becomes_an_error_with_its_message() {
        assert_eq!(catch_panic(async { 7 }).await, Ok(7));
        assert_eq!(catch_panic::<()>(async { panic!("one") }).await, Err("one".to_owned()));
        assert_eq!(catch_panic::<()>(async { panic!("{}", 2) }).await, Err("2".to_owned()));
    }
}
