//! Requests to the API server, counted as client-go counts them: one for each answer, and one for each that had none.

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

use super::labels::Answered;

/// The code of a request that was not answered.
const UNANSWERED: &str = "<error>";

/// Counts requests; a layer just above the connection, where a request has its host. Clones are one count.
#[derive(Clone, Debug)]
pub struct Requests(Family<Answered, Counter>);

impl Requests {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let requests = Self(Family::default());
        let help = "Requests to the API server by answer";
        registry.register("rest_client_requests", help, requests.0.clone());
        requests
    }
}

impl<S> Layer<S> for Requests {
    type Service = Counted<S>;

    fn layer(&self, inner: S) -> Counted<S> {
        Counted { inner, requests: self.clone() }
    }
}

/// A service whose requests are counted.
#[derive(Clone, Debug)]
pub struct Counted<S> {
    inner: S,
    requests: Requests,
}

impl<S, A, B> Service<Request<A>> for Counted<S>
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
        let answer = self.inner.call(request);
        async move {
            let answer = answer.await;
            let code = answer.as_ref().map_or(UNANSWERED.to_owned(), |answer| answer.status().as_u16().to_string());
            requests.0.get_or_create(&Answered { code, method, host }).inc();
            answer
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
        let requests = Requests::register(&mut registry);
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
