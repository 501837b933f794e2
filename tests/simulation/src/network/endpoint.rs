//! The host's end of the network: a `tower` service under the host's own client. Carries each request to the API server and its answer
//! back, with the delay and the fault that the network drew for it.

use std::{
    io,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture};
use http::{Request, Response, StatusCode};
use kube::client::Body;
use tower::{BoxError, Service};

use super::{
    Connection, Network, Passage,
    answer::{AnswerBody, whole},
    watch_stream,
};
use crate::fault::{Fault, RequestClass};

/// The host's end of the network. Clones are the same end.
#[derive(Clone)]
pub struct Endpoint {
    network: Arc<Network>,
    connection: Connection,
}

impl Endpoint {
    /// The end of this connection.
    pub fn new(network: Arc<Network>, connection: Connection) -> Self {
        Self { network, connection }
    }
}

impl Service<Request<Body>> for Endpoint {
    type Response = Response<AnswerBody>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Self::Response, BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (network, connection) = (self.network.clone(), self.connection.clone());
        if !connection.is_alive() {
            return std::future::pending().boxed();
        }
        network.cluster.sent(connection.id, &request);
        let passage = network.passage(connection.id.host, &request);
        carry(network, connection, request, passage).boxed()
    }
}

/// Carries a request there, and its answer back.
async fn carry(
    network: Arc<Network>,
    connection: Connection,
    request: Request<Body>,
    passage: Passage,
) -> Result<Response<AnswerBody>, BoxError> {
    let (parts, body) = request.into_parts();
    let request = Request::from_parts(parts, body.collect_bytes().await?);
    if let Some(fault) = passage.fault {
        let who = connection.id;
        network.record.note("network", || format!("{fault:?} for {who}: {} {}", request.method(), request.uri()));
    }
    match passage.fault {
        Some(Fault::CrashBefore(back_after)) => {
            network.crash(&connection, back_after);
            return std::future::pending().await;
        }
        Some(Fault::Lost) => {
            wait(passage.before).await;
            return Err(broken());
        }
        Some(Fault::Silent) => return std::future::pending().await,
        Some(Fault::Late(more)) => wait(passage.before + Duration::from_millis(more.into())).await,
        _ => wait(passage.before).await,
    }
    connection.until_connected().await;
    if let Some(Fault::Refused(code)) = passage.fault {
        return Ok(network.dated(connection.id.host, refusal(code)));
    }
    if RequestClass::Watch.has(&request) {
        let answer = network.dated(connection.id.host, watch_stream::start(&network, &connection, &request));
        wait(passage.after).await;
        return Ok(answer);
    }
    let request = from_cache(&network, &connection, request);
    let answer = network.dated(connection.id.host, network.cluster.handle(connection.id, &request));
    match passage.fault {
        Some(Fault::CrashAfter(back_after)) => {
            network.crash(&connection, back_after);
            return std::future::pending().await;
        }
        Some(Fault::AnswerSilent) => return std::future::pending().await,
        Some(Fault::AnswerLost) => {
            wait(passage.after).await;
            return Err(broken());
        }
        Some(Fault::AnswerLate(more)) => wait(passage.after + Duration::from_millis(more.into())).await,
        _ => wait(passage.after).await,
    }
    connection.until_connected().await;
    Ok(answer.map(whole))
}

/// A list that may come from the API server's cache, as one of what that cache knows. Everything else is read where it is written.
fn from_cache(network: &Network, connection: &Connection, request: Request<Bytes>) -> Request<Bytes> {
    let Some(behind) = network.behind(connection.id.host) else { return request };
    let uri = request.uri().to_string();
    if !uri.split(['?', '&']).any(|parameter| parameter == "resourceVersion=0") {
        return request;
    }
    let known = network.cluster.revision_before(behind).max(network.cluster.compacted());
    let exact = format!("resourceVersion={known}&resourceVersionMatch=Exact");
    let uri = uri.replace("resourceVersionMatch=NotOlderThan", "").replace("resourceVersion=0", &exact);
    let (mut parts, body) = request.into_parts();
    if let Ok(uri) = uri.parse() {
        parts.uri = uri;
    }
    Request::from_parts(parts, body)
}

/// Waits; not even for a moment if there is nothing to wait for.
async fn wait(delay: Duration) {
    if !delay.is_zero() {
        tokio::time::sleep(delay).await;
    }
}

fn broken() -> BoxError {
    io::Error::from(io::ErrorKind::ConnectionReset).into()
}

/// An answer with which an API server refuses a request before it looks at it.
fn refusal(code: u16) -> Response<AnswerBody> {
    let (reason, message) = match code {
        409 => ("Conflict", "the object has been modified; please apply your changes to the latest version"),
        422 => ("Invalid", "the object is invalid"),
        429 => ("TooManyRequests", "the server has received too many requests and has asked us to try again later"),
        503 => ("ServiceUnavailable", "the server is currently unable to handle the request"),
        504 => ("Timeout", "request did not complete within the allowed duration"),
        _ => ("InternalError", "an error on the server has prevented the request from succeeding"),
    };
    let status = serde_json::json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code,
    });
    let mut answer = Response::new(whole(status.to_string().into()));
    *answer.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer.headers_mut().insert("content-type", http::HeaderValue::from_static("application/json"));
    if code == 429 {
        answer.headers_mut().insert("retry-after", http::HeaderValue::from_static("1"));
    }
    answer
}
