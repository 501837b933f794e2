//! Lets the host survive a panic in one reconcile. A panic is a fault of the host's own; the others go on.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;

/// Runs something to its end, or to its panic and what that said. Nothing is shared with it that a panic could leave half
/// done: caches, queue and memory change under their own locks, each at once.
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
    #[allow(clippy::panic, reason = "it is what is survived")]
    async fn a_panic_is_told_and_no_more() {
        assert_eq!(catch_panic(async { 7 }).await, Ok(7));
        assert_eq!(catch_panic::<()>(async { panic!("one") }).await, Err("one".to_owned()));
        assert_eq!(catch_panic::<()>(async { panic!("{}", 2) }).await, Err("2".to_owned()));
    }
}
