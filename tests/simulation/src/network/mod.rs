//! The network between hosts and the API server: how long everything takes, and what goes wrong. A seed decides the delays; the steps
//! of a history decide the faults.
//!
//! # Flow
//!
//! A host's client sends its requests to an [`Endpoint`]. The network draws how long a request and its answer take, looks whether a
//! [`Fault`] waits for it, and passes it to the [`Cluster`]. A watch becomes a stream of its own
//! (`watch_stream.rs`).

mod answer;
mod connection;
pub mod date;
mod endpoint;
mod watch_stream;

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use fastrand::Rng;
use tokio::sync::mpsc;

use self::date::Dates;
pub use self::{connection::Connection, endpoint::Endpoint};
use crate::{
    cluster::Cluster,
    fault::{Fault, RequestClass, WatchTrouble},
    history::step::FAR,
    host_id::HostId,
    record::Record,
};

/// A host died because of a fault.
#[derive(Clone, Copy, Debug)]
pub struct Crash {
    /// Which.
    pub id: HostId,
    /// After what time another one comes up in its place.
    pub back_after: Duration,
}

/// How long everything takes.
#[derive(Clone, Copy, Debug)]
pub struct Delays {
    /// How long a request and its answer take at most, in milliseconds each.
    pub latency: u32,
    /// The host whose requests and answers take up to [`FAR`] milliseconds longer.
    pub far: Option<usize>,
    /// How much later a watch event arrives at most, in milliseconds.
    pub lag: u32,
}

/// The network.
pub struct Network {
    cluster: Arc<Cluster>,
    record: Record,
    state: Mutex<State>,
    crashes: mpsc::UnboundedSender<Crash>,
}

struct State {
    random: Rng,
    delays: Delays,
    /// Faults that wait for a request, with how many go through before.
    faults: Vec<(RequestClass, u16, Fault)>,
    watches: Watches,
    /// How far the watches of each host's API server are behind, in milliseconds.
    behind: BTreeMap<usize, u32>,
    dates: Dates,
}

/// The open watches, and what happens to those that come.
#[derive(Default)]
struct Watches {
    next: u64,
    open: BTreeMap<u64, OpenWatch>,
    /// How much later events come, by kind; the empty kind is for all.
    lags: BTreeMap<String, u32>,
    /// How many events the next watch of a kind repeats.
    replays: Vec<(Option<String>, u16)>,
}

impl Watches {
    /// Something happens to some of the open ones.
    fn suffer(&self, trouble: WatchTrouble, is_meant: impl Fn(&OpenWatch) -> bool) {
        for watch in self.open.values().filter(|watch| is_meant(watch)) {
            if watch.troubles.send(trouble).is_err() {
                tracing::debug!("a watch ended before its trouble");
            }
        }
    }
}

struct OpenWatch {
    host: usize,
    plural: String,
    troubles: mpsc::UnboundedSender<WatchTrouble>,
}

/// What the network does with one request.
#[derive(Clone, Copy, Debug)]
struct Passage {
    before: Duration,
    fault: Option<Fault>,
    after: Duration,
}

impl Network {
    /// A network whose delays follow from a seed. Tells of crashes on a channel.
    pub fn new(
        cluster: Arc<Cluster>,
        record: Record,
        seed: u64,
        delays: Delays,
        crashes: mpsc::UnboundedSender<Crash>,
    ) -> Arc<Self> {
        let (random, watches) = (Rng::with_seed(seed), Watches::default());
        let dates = Dates::new(seed);
        let state = State { random, delays, faults: Vec::new(), watches, behind: BTreeMap::new(), dates };
        Arc::new(Self { cluster, record, state: Mutex::new(state), crashes })
    }

    /// A later request of a class meets a fault.
    pub fn expect(&self, class: RequestClass, skip: u16, fault: Fault) {
        self.lock().faults.push((class, skip, fault));
    }

    /// Something happens to the watches of one kind, or of all.
    pub fn trouble(&self, plural: Option<&str>, trouble: WatchTrouble) {
        let mut state = self.lock();
        match trouble {
            WatchTrouble::Lag(more) => drop(state.watches.lags.insert(plural.unwrap_or_default().to_owned(), more)),
            WatchTrouble::Replay(events) => state.watches.replays.push((plural.map(str::to_owned), events)),
            WatchTrouble::Cut | WatchTrouble::Break | WatchTrouble::Stall | WatchTrouble::Expire => {
                state.watches.suffer(trouble, |watch| plural.is_none_or(|plural| watch.plural == plural));
            }
        }
    }

    /// A host's connection goes to another API server, whose watches are this many milliseconds behind. The watches of the one before
    /// end.
    pub fn move_connection(&self, host: usize, behind: u32) {
        let mut state = self.lock();
        state.behind.insert(host, behind);
        state.dates.move_host(host);
        state.watches.suffer(WatchTrouble::Cut, |watch| watch.host == host);
    }

    /// How far the watches of a host are behind; none if they are not.
    fn behind(&self, host: usize) -> Option<Duration> {
        let behind = self.lock().behind.get(&host).copied().filter(|behind| *behind > 0);
        behind.map(|behind| Duration::from_millis(behind.into()))
    }

    /// From now on nothing goes wrong any more.
    pub fn calm(&self) {
        let mut state = self.lock();
        state.faults.clear();
        state.watches.lags.clear();
        state.watches.replays.clear();
        state.behind.clear();
        state.dates.calm();
    }

    /// An answer to a host with the date of this moment.
    fn dated<B>(&self, host: usize, answer: http::Response<B>) -> http::Response<B> {
        self.lock().dates.dated(host, self.cluster.now(), answer)
    }

    /// A random number below a limit, for whoever else needs one.
    pub fn below(&self, limit: u32) -> u32 {
        self.lock().random.u32(0..limit.max(1))
    }

    fn passage<B>(&self, host: usize, request: &http::Request<B>) -> Passage {
        let mut state = self.lock();
        let mut fault = None;
        state.faults.retain_mut(|(class, skip, waiting)| {
            if fault.is_some() || !class.has(request) {
                return true;
            }
            if *skip > 0 {
                *skip -= 1;
                return true;
            }
            fault = Some(*waiting);
            false
        });
        let latency = state.delays.latency + if state.delays.far == Some(host) { FAR } else { 0 };
        let mut delay = || Duration::from_millis(state.random.u32(0..=latency).into());
        Passage { before: delay(), fault, after: delay() }
    }

    fn lag(&self, plural: &str) -> Duration {
        let mut state = self.lock();
        let more = |kind: &str| state.watches.lags.get(kind).copied().unwrap_or_default();
        let more = more(plural).max(more(""));
        let most = state.delays.lag;
        let usual = state.random.u32(0..=most);
        Duration::from_millis((usual + more).into())
    }

    fn open_watch(&self, host: usize, plural: &str) -> (u64, mpsc::UnboundedReceiver<WatchTrouble>) {
        let (troubles, receiver) = mpsc::unbounded_channel();
        let watches = &mut self.lock().watches;
        watches.next += 1;
        watches.open.insert(watches.next, OpenWatch { host, plural: plural.to_owned(), troubles });
        (watches.next, receiver)
    }

    fn close_watch(&self, number: u64) {
        self.lock().watches.open.remove(&number);
    }

    /// How many events a new watch of this kind repeats.
    fn replay(&self, plural: &str) -> Option<u16> {
        let replays = &mut self.lock().watches.replays;
        let found = replays.iter().position(|(kind, _)| kind.as_deref().is_none_or(|kind| kind == plural))?;
        Some(replays.remove(found).1)
    }

    fn crash(&self, connection: &Connection, back_after: u32) {
        connection.kill();
        let crash = Crash { id: connection.id, back_after: Duration::from_millis(back_after.into()) };
        if self.crashes.send(crash).is_err() {
            tracing::debug!("a host crashed after the end of its history");
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
