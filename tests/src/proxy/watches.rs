//! Fault injection for watches: a test delays, freezes, cuts or refuses them. Events are forwarded one by one and never overtake
//! each other.

use std::{
    collections::{BTreeSet, VecDeque},
    future::pending,
    io,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::Result;
use axum::{
    body::{Body, BodyDataStream, Bytes},
    http::StatusCode,
    response::Response,
};
use futures::{StreamExt, stream};
use serde_json::Value;
use tokio::{
    sync::{broadcast, watch},
    time::{Instant, sleep_until},
};

use super::{
    answer::{event, failure, status},
    request::Target,
};

/// The number of commands that a stream may lag behind.
const ORDERS: usize = 64;

/// The answer to a watch from a compacted revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expiry {
    /// With a status instead of a stream.
    Answer,
    /// With a stream whose only event is the error.
    Event,
}

/// The faults for watches. Resources are named in the plural: `configmaps`.
pub struct Watches {
    rules: watch::Sender<Rules>,
    orders: broadcast::Sender<Order>,
    open: Arc<Open>,
}

#[derive(Clone, Default)]
struct Rules {
    delay: Duration,
    frozen: BTreeSet<String>,
    refusal: Option<StatusCode>,
    expired: Option<(u64, Expiry)>,
}

#[derive(Clone)]
enum Order {
    /// Ends every stream without an error.
    Cut,
    /// Silences the streams of a resource.
    Stall(String),
    /// Inserts a line into the streams of a resource.
    Say(String, String),
}

impl Default for Watches {
    fn default() -> Self {
        Self { rules: watch::Sender::default(), orders: broadcast::Sender::new(ORDERS), open: Arc::default() }
    }
}

impl Watches {
    /// Delays every event.
    pub fn delay(&self, by: Duration) {
        self.rules.send_modify(|rules| rules.delay = by);
    }

    /// Freezes the watches of a resource: they stay open, and their events wait until they are thawed.
    pub fn freeze(&self, resource: &str) {
        self.rules.send_modify(|rules| rules.frozen.extend([resource.to_owned()]));
    }

    /// Sends the events that were frozen.
    pub fn thaw(&self) {
        self.rules.send_modify(|rules| rules.frozen.clear());
    }

    /// Silences the open watches of a resource for ever: they send nothing, not even their end. New watches work.
    pub fn stall(&self, resource: &str) {
        self.order(Order::Stall(resource.to_owned()));
    }

    /// The label selectors of the watches of a resource that are open, in order; an empty one selects everything.
    pub fn open(&self, resource: &str) -> Vec<String> {
        let open = self.open.places();
        let mut selectors: Vec<_> =
            open.iter().filter(|target| target.resource == resource).map(|target| target.selector.clone()).collect();
        selectors.sort();
        selectors
    }

    /// How many watches of a resource are open that ask for nothing but metadata.
    pub fn open_for_metadata(&self, resource: &str) -> usize {
        let open = self.open.places();
        open.iter().filter(|target| target.resource == resource && target.is_for_metadata).count()
    }

    /// Cuts all watches off.
    pub fn cut(&self) {
        self.order(Order::Cut);
    }

    /// Answers new watches with a status.
    pub fn refuse(&self, status: StatusCode) {
        self.rules.send_modify(|rules| rules.refusal = Some(status));
    }

    /// Lets new watches through again.
    pub fn admit(&self) {
        self.rules.send_modify(|rules| rules.refusal = None);
    }

    /// Simulates a compaction: a watch from before this resource version is answered with 410.
    pub fn forget_before(&self, version: u64, expiry: Expiry) {
        self.rules.send_modify(|rules| rules.expired = Some((version, expiry)));
    }

    /// Sends an event to the watches of a resource that the API server did not send, such as `ADDED` with an object.
    pub fn say(&self, resource: &str, event_type: &str, object: &Value) {
        self.order(Order::Say(resource.to_owned(), event(event_type, object)));
    }

    /// Sends an error event to the watches of a resource.
    pub fn say_failure(&self, resource: &str, code: StatusCode) {
        self.say(resource, "ERROR", &status(code, "the test says so"));
    }

    pub(super) async fn pass(
        &self,
        target: &Target,
        forward: impl Future<Output = Result<Response>>,
    ) -> Result<Response> {
        let refused = self.rules.borrow().refusal(target);
        if let Some(refusal) = refused {
            return Ok(refusal);
        }
        // Subscribe before the request, so that no command is missed while the API server answers.
        let (rules, orders) = (self.rules.subscribe(), self.orders.subscribe());
        let answer = forward.await?;
        if answer.status() != StatusCode::OK {
            return Ok(answer);
        }
        let (parts, body) = answer.into_parts();
        let upstream = Some(body.into_data_stream());
        let resource = target.resource.clone();
        let place = self.open.take(target);
        let (part, waiting) = Default::default();
        let stream = Stream { resource, upstream, rules, orders, part, waiting, _place: place };
        Ok(Response::from_parts(parts, Body::from_stream(stream::unfold(Some(stream), Stream::next))))
    }

    fn order(&self, order: Order) {
        // Sending fails only without an open stream, and then there is nothing to do.
        drop(self.orders.send(order));
    }
}

impl Rules {
    /// The answer to a refused watch.
    fn refusal(&self, target: &Target) -> Option<Response> {
        if let Some(status) = self.refusal {
            return Some(failure(status, "the test refuses watches"));
        }
        let (version, expiry) = self.expired?;
        target.since.is_some_and(|since| since < version).then(|| match expiry {
            Expiry::Answer => failure(StatusCode::GONE, "too old resource version"),
            Expiry::Event => {
                Response::new(Body::from(event("ERROR", &status(StatusCode::GONE, "too old resource version"))))
            }
        })
    }
}

/// One watch that is forwarded to the host.
struct Stream {
    resource: String,
    /// None once the API server has ended it.
    upstream: Option<BodyDataStream>,
    rules: watch::Receiver<Rules>,
    orders: broadcast::Receiver<Order>,
    /// The first part of an incomplete event.
    part: Vec<u8>,
    /// Complete events with their arrival times.
    waiting: VecDeque<(Instant, Bytes)>,
    _place: Place,
}

/// The open streams.
#[derive(Default)]
struct Open(Mutex<Vec<Target>>);

/// The registration of an open stream. Ends with the stream, or when the host stops reading it.
struct Place {
    open: Arc<Open>,
    target: Target,
}

impl Open {
    fn take(self: &Arc<Self>, target: &Target) -> Place {
        self.places().push(target.clone());
        Place { open: self.clone(), target: target.clone() }
    }

    fn places(&self) -> MutexGuard<'_, Vec<Target>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.open.places();
        if let Some(place) = open.iter().position(|open| *open == self.target) {
            open.swap_remove(place);
        }
    }
}

impl Stream {
    /// The next event for the host; nothing after the end.
    async fn next(this: Option<Self>) -> Option<(io::Result<Bytes>, Option<Self>)> {
        let mut this = this?;
        loop {
            let due = this.due();
            if due.is_some_and(|due| due <= Instant::now())
                && let Some((_, event)) = this.waiting.pop_front()
            {
                return Some((Ok(event), Some(this)));
            }
            if this.upstream.is_none() && this.waiting.is_empty() && !this.is_frozen() {
                return None;
            }
            tokio::select! {
                bytes = read(&mut this.upstream) => match bytes {
                    Some(Ok(bytes)) => this.take(&bytes),
                    Some(Err(error)) => return Some((Err(io::Error::other(error)), None)),
                    None => this.upstream = None,
                },
                order = this.orders.recv() => match order {
                    Ok(Order::Cut) => return Some((Err(io::ErrorKind::ConnectionReset.into()), None)),
                    Ok(Order::Say(resource, line)) if resource == this.resource => {
                        this.waiting.push_back((Instant::now(), line.into()));
                    }
                    Ok(Order::Stall(resource)) if resource == this.resource => pending().await,
                    Ok(Order::Say(..) | Order::Stall(_)) => {}
                    Err(error) => return Some((Err(io::Error::other(error)), None)),
                },
                changed = this.rules.changed() => if changed.is_err() { return None },
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => {}
            }
        }
    }

    /// The time at which the first waiting event is due; none while the stream is frozen.
    fn due(&mut self) -> Option<Instant> {
        let delay = self.rules.borrow_and_update().delay;
        let (came, _) = self.waiting.front()?;
        (!self.is_frozen()).then(|| *came + delay)
    }

    fn is_frozen(&self) -> bool {
        self.rules.borrow().frozen.contains(&self.resource)
    }

    /// Adds bytes from the API server, which may end in the middle of an event, and splits them into events.
    fn take(&mut self, bytes: &[u8]) {
        self.part.extend_from_slice(bytes);
        while let Some(end) = self.part.iter().position(|byte| *byte == b'\n') {
            let event = self.part.drain(..=end).collect::<Vec<_>>();
            self.waiting.push_back((Instant::now(), event.into()));
        }
    }
}

/// The next bytes of a stream. Never returns once the stream has ended.
async fn read(upstream: &mut Option<BodyDataStream>) -> Option<Result<Bytes, axum::Error>> {
    match upstream {
        Some(stream) => stream.next().await,
        None => pending().await,
    }
}
