//! Chooses the connection of a request. An API server limits the streams of one HTTP/2 connection (kube-apiserver: 100 by
//! default), and a watch keeps its stream open. On a single connection the hundredth watch would block all other requests for ever,
//! so further watches get connections of their own. A host with few kinds has a single connection. Sends nothing itself.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use http::Request;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::{Client, Error, ResponseFuture, connect::HttpConnector};
use kube::client::Body;
use tower::Service;

use super::request::is_watch;

/// One connection, opened at its first request.
pub(super) type HttpClient = Client<HttpsConnector<HttpConnector>, Body>;

/// The most watches on the first connection, which must keep room for reads and writes.
const WATCHES_ON_FIRST: usize = 24;

/// The most watches on each further connection.
const WATCHES_ON_FURTHER: usize = 80;

/// All connections. Clones share them.
#[derive(Clone)]
pub(super) struct Connections(Arc<Mutex<Inner>>);

struct Inner {
    open: Box<dyn Fn() -> HttpClient + Send>,
    connections: Vec<HttpClient>,
    /// The number of each watch by its path, in the order of the first requests.
    watches: HashMap<String, usize>,
}

impl Connections {
    /// Connections that `open` creates when they are needed.
    pub(super) fn new(open: impl Fn() -> HttpClient + Send + 'static) -> Self {
        let inner = Inner { connections: vec![open()], open: Box::new(open), watches: HashMap::new() };
        Self(Arc::new(Mutex::new(inner)))
    }

    /// The connection for a request. The same watch always gets the same connection.
    fn choose<B>(&self, request: &Request<B>) -> HttpClient {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let index = if is_watch(request) {
            let (path, next) = (request.uri().path().to_owned(), inner.watches.len());
            connection_of(*inner.watches.entry(path).or_insert(next))
        } else {
            0
        };
        while inner.connections.len() <= index {
            let another = (inner.open)();
            inner.connections.push(another);
        }
        inner.connections[index].clone()
    }
}

/// The index of the connection for the watch with this number.
fn connection_of(watch: usize) -> usize {
    watch.checked_sub(WATCHES_ON_FIRST).map_or(0, |rest| 1 + rest / WATCHES_ON_FURTHER)
}

impl Service<Request<Body>> for Connections {
    type Response = <HttpClient as Service<Request<Body>>>::Response;
    type Error = Error;
    type Future = ResponseFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> ResponseFuture {
        self.choose(&request).request(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_connection_has_more_watches_than_streams() {
        let mut watches = [0; 8];
        (0..500).for_each(|watch| watches[connection_of(watch)] += 1);
        assert_eq!(watches[0], WATCHES_ON_FIRST);
        assert!(watches[1..].iter().all(|count| *count <= WATCHES_ON_FURTHER), "{watches:?}");
    }
}
