//! The signals that end a command which runs until it is told to end. Ends nothing itself.

use anyhow::Context;
use futures::{FutureExt, future::BoxFuture};
use tokio::signal::unix::{SignalKind, signal};

/// Resolves when the process receives SIGTERM or SIGINT.
///
/// # Errors
/// If the system does not deliver signals.
pub fn listen() -> anyhow::Result<BoxFuture<'static, ()>> {
    let mut terminate = signal(SignalKind::terminate()).context("failed to listen for SIGTERM")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("failed to listen for SIGINT")?;
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => tracing::info!("SIGTERM: ending what is under way"),
            _ = interrupt.recv() => tracing::info!("SIGINT: ending what is under way"),
        }
    };
    Ok(stop.boxed())
}
