//! How long an answer may take. One that never comes, or never ends, would hold its object for ever: after a while the
//! request fails, and is tried again as whatever fails. Watches last as long as they like, for they notice silence
//! themselves.

use std::{
    task::{Context, Poll},
    time::Duration,
};

use futures::future::BoxFuture;
use http::{Request, Response};
use http_body_util::Either;
use tower::{BoxError, Layer, Service};
use tower_http::timeout::TimeoutBody;

use super::request::is_watch;

/// No answer came in time. The request may have been carried out all the same.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {0:?}")]
struct NoAnswer(Duration);

/// Puts the limit before a service.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestTimeout(Duration);

impl RequestTimeout {
    /// So long for an answer to begin, and so long for each of its parts.
    pub(super) fn new(limit: Duration) -> Self {
        Self(limit)
    }
}

impl<S> Layer<S> for RequestTimeout {
    type Service = WithTimeout<S>;

    fn layer(&self, inner: S) -> WithTimeout<S> {
        WithTimeout { inner, limit: self.0 }
    }
}

/// A service whose answers come in time or not at all.
#[derive(Clone, Debug)]
pub(super) struct WithTimeout<S> {
    inner: S,
    limit: Duration,
}

impl<S, A, B> Service<Request<A>> for WithTimeout<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
{
    type Response = Response<Either<B, TimeoutBody<B>>>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.inner.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let (watches, limit) = (is_watch(&request), self.limit);
        let answer = self.inner.call(request);
        Box::pin(async move {
            if watches {
                return Ok(answer.await.map_err(Into::into)?.map(Either::Left));
            }
            let answer = tokio::time::timeout(limit, answer).await.map_err(|_| NoAnswer(limit))?;
            Ok(answer.map_err(Into::into)?.map(|body| Either::Right(TimeoutBody::new(limit, body))))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::{convert::Infallible, future::pending};

    use axum::body::Body;
    use futures::stream;
    use http_body_util::BodyExt;
    use tower::{ServiceExt, service_fn};

    use super::*;

    const LIMIT: Duration = Duration::from_millis(50);

    /// A server that answers some requests never, and others without an end.
    async fn server(request: Request<()>) -> Result<Response<Body>, Infallible> {
        Ok(match request.uri().path() {
            "/silent" => pending().await,
            "/endless" => Response::new(Body::from_stream(stream::pending::<Result<Vec<u8>, Infallible>>())),
            _ => Response::new(Body::from("well")),
        })
    }

    async fn ask(uri: &str) -> Result<Vec<u8>, BoxError> {
        let request = Request::builder().uri(uri).body(())?;
        let answer = RequestTimeout::new(LIMIT).layer(service_fn(server)).oneshot(request).await?;
        Ok(answer.into_body().collect().await?.to_bytes().to_vec())
    }

    #[tokio::test]
    async fn what_is_not_answered_fails_and_a_watch_waits() -> Result<(), BoxError> {
        assert_eq!(ask("/quick").await?, b"well");
        let failure = ask("/silent").await.err().map(|error| error.to_string());
        assert_eq!(failure.as_deref(), Some("no answer within 50ms"));
        assert!(ask("/endless").await.is_err(), "an answer that has begun must go on");
        for watch in ["/silent?watch=true", "/endless?watch=true"] {
            let waited = tokio::time::timeout(4 * LIMIT, ask(watch)).await;
            assert!(waited.is_err(), "{watch} ended");
        }
        Ok(())
    }
}
