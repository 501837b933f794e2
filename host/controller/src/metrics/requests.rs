//! Counts requests to the API server as client-go does: by the status code of the response, or as an error without one. Changes
//! no request.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use futures::FutureExt;
use http::{Request, Response};
use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};
use tower::{Layer, Service};

use super::labels::RequestLabels;

/// The code of a request without a response, as in client-go.
const ERROR_CODE: &str = "<error>";

/// The layer that counts requests. It belongs just above the connection, where a request has its host. Clones share their
/// counters.
#[derive(Clone, Debug)]
pub struct RequestMetrics(Family<RequestLabels, Counter>);

impl RequestMetrics {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let requests = Self(Family::default());
        let help = "Requests to the API server by answer";
        registry.register("rest_client_requests", help, requests.0.clone());
        requests
    }
}

impl<S> Layer<S> for RequestMetrics {
    type Service = WithRequestMetrics<S>;

    fn layer(&self, inner: S) -> WithRequestMetrics<S> {
        WithRequestMetrics { inner, requests: self.clone() }
    }
}

/// A service whose requests are counted.
#[derive(Clone, Debug)]
pub struct WithRequestMetrics<S> {
    inner: S,
    requests: RequestMetrics,
}

impl<S, A, B> Service<Request<A>> for WithRequestMetrics<S>
where
    S: Service<Request<A>, Response = Response<B>>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<S::Response, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<A>) -> Self::Future {
        let method = request.method().as_str().to_owned();
        let host = request.uri().authority().map(|authority| authority.as_str().to_owned()).unwrap_or_default();
        let requests = self.requests.clone();
        let response = self.inner.call(request);
        async move {
            let response = response.await;
            let code =
                response.as_ref().map_or(ERROR_CODE.to_owned(), |response| response.status().as_u16().to_string());
            requests.0.get_or_create(&RequestLabels { code, method, host }).inc();
            response
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode;
    use tower::{ServiceExt, service_fn};

    use super::*;

    #[tokio::test]
    async fn an_answer_is_counted_by_its_code_and_silence_as_an_error() -> Result<(), Box<dyn std::error::Error>> {
        let mut registry = Registry::default();
        let requests = RequestMetrics::register(&mut registry);
        let server = service_fn(|request: Request<()>| async move {
            match request.uri().path() {
                "/down" => Err("nobody is there"),
                _ => Ok(Response::builder().status(201).body(()).unwrap_or_default()),
            }
        });
        for (method, path) in [("POST", "/up"), ("POST", "/up"), ("GET", "/down")] {
            let request =
                Request::builder().method(method).uri(format!("https://api.example.com:6443{path}")).body(())?;
            drop(requests.layer(server).oneshot(request).await);
        }
        let mut text = String::new();
        encode(&mut text, &registry)?;
        for line in [
            "rest_client_requests_total{code=\"201\",method=\"POST\",host=\"api.example.com:6443\"} 2",
            "rest_client_requests_total{code=\"<error>\",method=\"GET\",host=\"api.example.com:6443\"} 1",
        ] {
            assert!(text.lines().any(|found| found == line), "no {line} in {text}");
        }
        Ok(())
    }
}
