//! The timeout of requests. A response that never arrives or never ends would block the reconcile of its object for ever, so the
//! request fails after a while. The events of a watch may stay out, because its watcher notices silence itself; that it begins may not,
//! because nobody notices that. Retries nothing.

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

/// No response arrived in time. The server may have carried out the request anyway.
#[derive(Debug, thiserror::Error)]
#[error("no answer within {0:?}")]
struct NoAnswer(Duration);

/// The layer that applies the timeout.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestTimeout(Duration);

impl RequestTimeout {
    /// Allows `limit` for the response to start, and again for each part of its body.
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

/// A service whose requests time out.
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
        let (is_watch, limit) = (is_watch(&request), self.limit);
        let response = self.inner.call(request);
        Box::pin(async move {
            let response = tokio::time::timeout(limit, response).await.map_err(|_| NoAnswer(limit))?;
            let response = response.map_err(Into::into)?;
            Ok(match is_watch {
                true => response.map(Either::Left),
                false => response.map(|body| Either::Right(TimeoutBody::new(limit, body))),
            })
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

    /// A server that never answers one path, and answers another one with a body that never ends.
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
        let waited = tokio::time::timeout(4 * LIMIT, ask("/endless?watch=true")).await;
        assert!(waited.is_err(), "a watch that is silent for a while ended");
        let failure = ask("/silent?watch=true").await.err().map(|error| error.to_string());
        assert_eq!(failure.as_deref(), Some("no answer within 50ms"), "a watch that never begins");
        Ok(())
    }
}
