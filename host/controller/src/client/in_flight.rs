//! Limits the writes in flight on the first connection. The limit stays well below the streams that an API server allows, so many
//! changes at once do not exhaust the connection. Reads and watches are not limited.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use http::Request;
use tokio::sync::Semaphore;
use tower::{BoxError, Layer, Service};

use super::request::is_write;

/// The most writes in flight. Together with the watches on the same connection they stay below its 100 streams.
const MAX_WRITES: usize = 48;

/// The layer that limits the writes in flight.
#[derive(Clone)]
pub(super) struct InFlightLimit(Arc<Semaphore>);

impl InFlightLimit {
    /// A limit of its own, with no write in flight.
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(MAX_WRITES)))
    }
}

impl<S> Layer<S> for InFlightLimit {
    type Service = WithInFlightLimit<S>;

    fn layer(&self, inner: S) -> WithInFlightLimit<S> {
        WithInFlightLimit { inner, writes: self.0.clone() }
    }
}

/// A service whose writes in flight are limited.
#[derive(Clone)]
pub(super) struct WithInFlightLimit<S> {
    inner: S,
    writes: Arc<Semaphore>,
}

impl<S, B> Service<Request<B>> for WithInFlightLimit<S>
where
    S: Service<Request<B>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<BoxError>,
    B: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<S::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        // tower: only the instance that `poll_ready` was called on may be called, so the clone stays behind.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let writes = self.writes.clone();
        Box::pin(async move {
            let _permit = if is_write(&request) { Some(writes.acquire_owned().await?) } else { None };
            inner.call(request).await.map_err(Into::into)
        })
    }
}
