//! Keeps the host alive if one reconcile panics. A panic is a bug of the host; the reconciles of other objects continue.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;

/// A panic, with its message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the host panicked, which is a fault of its own: {0}")]
pub struct Panicked(String);

/// Runs a future to its end.
///
/// Unwind safety is asserted because all shared state (caches, queue, object states) changes under locks of its own, each change
/// in one step, so a panic cannot leave it inconsistent.
///
/// # Errors
/// [`Panicked`] if it panics.
pub async fn catch_panic<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    AssertUnwindSafe(work).catch_unwind().await.map_err(|panic| {
        let message = panic.downcast_ref::<String>().cloned();
        Panicked(message.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    #[allow(clippy::panic, reason = "the test is about panics")]
    async fn a_panic_becomes_an_error_with_its_message() {
        assert_eq!(catch_panic(async { 7 }).await, Ok(7));
        assert_eq!(catch_panic::<()>(async { panic!("one") }).await, Err(Panicked("one".to_owned())));
        assert_eq!(catch_panic::<()>(async { panic!("{}", 2) }).await, Err(Panicked("2".to_owned())));
    }
}
