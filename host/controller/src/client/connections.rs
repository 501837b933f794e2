//! Chooses the connection of a request. An API server limits the streams of one HTTP/2 connection (kube-apiserver: 100 by
//! default), and a watch keeps its stream open. On a single connection the hundredth watch would block all other requests for ever,
//! so further watches get connections of their own. A host with few kinds has a single connection. Sends nothing itself.

use std::{
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
};

use futures::{FutureExt, TryFutureExt, future::BoxFuture};
use http::{Request, Response};
use http_body::{Body as HttpBody, Frame, SizeHint};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::{Client, connect::HttpConnector};
use kube::client::Body;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tower::Service;

use super::request::is_watch;

/// One connection, opened at its first request.
pub(super) type HttpClient = Client<HttpsConnector<HttpConnector>, Body>;

/// The most watches on the first connection, which must keep room for reads and writes.
const WATCHES_ON_FIRST: usize = 24;

/// The most watches on each further connection.
const WATCHES_ON_FURTHER: usize = 80;

/// All connections. Clones share them.
pub(super) struct Connections<C = HttpClient>(Arc<Mutex<Inner<C>>>);

struct Inner<C> {
    open: Box<dyn Fn() -> C + Send>,
    first: Connection<C>,
    further: Vec<Connection<C>>,
}

struct Connection<C> {
    client: C,
    /// How many more watches it may have.
    room: Arc<Semaphore>,
}

impl<C: Clone> Connection<C> {
    fn new(client: C, watches: usize) -> Self {
        Self { client, room: Arc::new(Semaphore::new(watches)) }
    }

    /// The connection for another watch, if it has room for one.
    fn for_watch(&self) -> Option<(C, OwnedSemaphorePermit)> {
        let place = self.room.clone().try_acquire_owned().ok()?;
        Some((self.client.clone(), place))
    }
}

impl<C: Clone> Connections<C> {
    /// Connections that `open` creates when they are needed.
    pub(super) fn new(open: impl Fn() -> C + Send + 'static) -> Self {
        let first = Connection::new(open(), WATCHES_ON_FIRST);
        Self(Arc::new(Mutex::new(Inner { open: Box::new(open), first, further: Vec::new() })))
    }

    /// The connection for a request, and the place that a watch has on it.
    fn choose<B>(&self, request: &Request<B>) -> (C, Option<OwnedSemaphorePermit>) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_watch(request) {
            return (inner.first.client.clone(), None);
        }
        let with_room = std::iter::once(&inner.first).chain(&inner.further).find_map(Connection::for_watch);
        if let Some((client, place)) = with_room {
            return (client, Some(place));
        }
        let another = Connection::new((inner.open)(), WATCHES_ON_FURTHER);
        let place = another.for_watch();
        let client = another.client.clone();
        inner.further.push(another);
        (client, place.map(|(_, place)| place))
    }
}

impl<C> Clone for Connections<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C, B> Service<Request<Body>> for Connections<C>
where
    C: Service<Request<Body>, Response = Response<B>> + Clone,
    C::Future: Send + 'static,
{
    type Response = Response<OnConnection<B>>;
    type Error = C::Error;
    type Future = BoxFuture<'static, Result<Self::Response, C::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), C::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let (mut client, place) = self.choose(&request);
        let response = client.call(request);
        response.map_ok(|response| response.map(|body| OnConnection { body, _place: place })).boxed()
    }
}

/// The body of a response. That of a watch keeps its place on the connection until it is dropped.
pub(super) struct OnConnection<B> {
    body: B,
    _place: Option<OwnedSemaphorePermit>,
}

impl<B: HttpBody + Unpin> HttpBody for OnConnection<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::atomic::{AtomicUsize, Ordering},
    };

    use tower::{service_fn, util::BoxCloneService};

    use super::*;

    type Numbered = BoxCloneService<Request<Body>, Response<usize>, Infallible>;

    /// Connections whose responses are the number of the connection.
    fn connections() -> Connections<Numbered> {
        let opened = AtomicUsize::new(0);
        Connections::new(move || {
            let number = opened.fetch_add(1, Ordering::Relaxed);
            BoxCloneService::new(service_fn(move |_| async move { Ok(Response::new(number)) }))
        })
    }

    async fn send(connections: &mut Connections<Numbered>, query: &str) -> http::Result<OnConnection<usize>> {
        let request = Request::get(format!("/api/v1/pods?{query}")).body(Body::empty())?;
        let Ok(response) = connections.call(request).await;
        Ok(response.into_body())
    }

    /// Those of one kind with different selectors, too.
    #[tokio::test]
    async fn no_connection_has_more_watches_than_streams() -> http::Result<()> {
        let (mut connections, mut watches) = (connections(), Vec::new());
        for number in 0..500 {
            watches.push(send(&mut connections, &format!("labelSelector=number%3D{number}&watch=true")).await?);
        }
        let on = |connection: usize| watches.iter().filter(|watch| watch.body == connection).count();
        assert_eq!((0..8).map(on).collect::<Vec<_>>(), [24, 80, 80, 80, 80, 80, 76, 0]);
        assert_eq!(send(&mut connections, "limit=500").await?.body, 0);
        Ok(())
    }

    #[tokio::test]
    async fn a_watch_that_ended_leaves_its_place_to_another() -> http::Result<()> {
        let (mut connections, mut watches) = (connections(), Vec::new());
        for _ in 0..WATCHES_ON_FIRST {
            watches.push(send(&mut connections, "watch=true").await?);
        }
        assert_eq!(send(&mut connections, "watch=true").await?.body, 1);
        watches.pop();
        assert_eq!(send(&mut connections, "watch=true").await?.body, 0);
        Ok(())
    }
}
