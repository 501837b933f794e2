//! The shared caches: one watch per kind and scope for the whole process, however many plugins use it. A watch lives
//! as long as somebody holds its [`Watched`]; the last one to go ends it.

mod backoff;
pub(crate) mod object;
pub(crate) mod store;
mod watch;

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError, Weak},
    time::Duration,
};

use kube::Client;
use pilothouse_engine::contract::KindRef;

pub use object::{ControllerRef, Incoming, Name, Object};
pub use store::{Change, Store};
pub use watch::{State, Watched};

/// Which objects of a kind a watch brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scope {
    /// All of them: objects being reconciled, and what is looked up.
    All,
    /// Those that carry the label [`crate::labels::PLUGIN`]: children of this host's plugins.
    Children,
}

/// Where the caches tell what has changed.
pub trait Sink: Send + Sync {
    /// An object came, changed or went.
    fn changed(&self, kind: &KindRef, scope: Scope, change: &Change);

    /// A state came that was known already, as the answer to an own write: news to all but the writer.
    fn echoed(&self, kind: &KindRef, scope: Scope, object: &Object);

    /// A watch that was not synced is now: what depends on the whole kind must look again.
    fn synced(&self, kind: &KindRef, scope: Scope);
}

/// What all watches have in common.
#[derive(Clone, Debug)]
pub struct Reach {
    /// The only namespace that is watched, if it is one.
    pub namespace: Option<Arc<str>>,
    /// How long a watch lasts before it is renewed, in whole seconds. One that stays silent for a few seconds longer, without
    /// even the API server's bookmarks, is given up. One that does not bring a write of this process for that long either.
    pub renewal: Duration,
}

impl Reach {
    /// The renewal within what the watcher takes, whose longest is just below five minutes.
    fn renewal_seconds(&self) -> u32 {
        self.renewal.as_secs().clamp(1, 290) as u32
    }
}

/// All caches of the process.
pub struct Caches {
    client: Client,
    reach: Reach,
    sink: Arc<dyn Sink>,
    watches: Mutex<HashMap<(KindRef, Scope), Weak<Watched>>>,
}

impl Caches {
    /// No watch yet; `sink` hears of every change. Namespaced kinds are watched in one namespace or in all.
    pub fn new(client: Client, reach: Reach, sink: Arc<dyn Sink>) -> Self {
        Self { client, reach, sink, watches: Mutex::default() }
    }

    /// The watch of a kind, started if nobody uses it yet. Needs a tokio runtime.
    pub fn watch(&self, kind: &KindRef, scope: Scope) -> Arc<Watched> {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.retain(|_, watch| watch.strong_count() > 0);
        let slot = watches.entry((kind.clone(), scope)).or_default();
        slot.upgrade().unwrap_or_else(|| {
            let watched =
                Watched::start(self.client.clone(), self.reach.clone(), kind.clone(), scope, self.sink.clone());
            *slot = Arc::downgrade(&watched);
            watched
        })
    }

    /// The watches that are alive.
    pub fn watches(&self) -> Vec<Arc<Watched>> {
        let watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        watches.values().filter_map(Weak::upgrade).collect()
    }
}
