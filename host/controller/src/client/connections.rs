//! Which connection a request takes. An API server allows so many streams on one HTTP/2 connection (kube-apiserver: 100
//! where it is not told otherwise), and a watch keeps its stream: with one connection for everything, the hundredth watch
//! would stop every other request for ever. A host with few kinds has one connection all the same.

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

/// One connection, made on its first use.
pub(super) type Http = Client<HttpsConnector<HttpConnector>, Body>;

/// Watches on the connection that everything else takes, too; it keeps room for writes and reads.
const WATCHES_ON_FIRST: usize = 24;

/// Watches on each further connection.
const WATCHES_ON_FURTHER: usize = 80;

/// All connections. Clones are the same connections.
#[derive(Clone)]
pub(super) struct Connections(Arc<Mutex<Inner>>);

struct Inner {
    open: Box<dyn Fn() -> Http + Send>,
    connections: Vec<Http>,
    /// Which of all watches a path's is, in the order in which they came.
    watches: HashMap<String, usize>,
}

impl Connections {
    /// Connections as `open` makes them, each on its first use.
    pub(super) fn new(open: impl Fn() -> Http + Send + 'static) -> Self {
        let inner = Inner { connections: vec![open()], open: Box::new(open), watches: HashMap::new() };
        Self(Arc::new(Mutex::new(inner)))
    }

    /// The connection for a request: for the same watch always the same.
    fn choose<B>(&self, request: &Request<B>) -> Http {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = if is_watch(request) {
            let (path, next) = (request.uri().path().to_owned(), inner.watches.len());
            connection_of(*inner.watches.entry(path).or_insert(next))
        } else {
            0
        };
        while inner.connections.len() <= place {
            let another = (inner.open)();
            inner.connections.push(another);
        }
        inner.connections[place].clone()
    }
}

/// The connection that a watch takes, by its number.
fn connection_of(watch: usize) -> usize {
    watch.checked_sub(WATCHES_ON_FIRST).map_or(0, |rest| 1 + rest / WATCHES_ON_FURTHER)
}

impl Service<Request<Body>> for Connections {
    type Response = <Http as Service<Request<Body>>>::Response;
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
