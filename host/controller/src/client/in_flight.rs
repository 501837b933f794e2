//! How many writes are under way at once on the one connection: far fewer than the streams that an API server allows, so
//! that many plugins with many changes neither use the connection up nor wait on each other for ever. Reads and watches
//! pass by.

use std::{
    sync::Arc,
    task::{Context, Poll},
};

use futures::future::BoxFuture;
use http::Request;
use tokio::sync::Semaphore;
use tower::{BoxError, Layer, Service};

use super::request::is_write;

/// Writes at once: with the watches beside them fewer than the 100 streams of a connection.
const WRITES: usize = 48;

/// Puts the limit before a service.
#[derive(Clone)]
pub(super) struct InFlightLimit(Arc<Semaphore>);

impl InFlightLimit {
    /// A limit that nobody uses yet.
    pub(super) fn new() -> Self {
        Self(Arc::new(Semaphore::new(WRITES)))
    }
}

impl<S> Layer<S> for InFlightLimit {
    type Service = WithInFlightLimit<S>;

    fn layer(&self, inner: S) -> WithInFlightLimit<S> {
        WithInFlightLimit { inner, writes: self.0.clone() }
    }
}

/// A service behind the limit.
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
        // The service that was found ready is the one that is called.
        let clone = self.inner.clone();
        let mut inner = std::mem::replace(&mut self.inner, clone);
        let writes = self.writes.clone();
        Box::pin(async move {
            let _permit = if is_write(&request) { Some(writes.acquire_owned().await?) } else { None };
            inner.call(request).await.map_err(Into::into)
        })
    }
}
