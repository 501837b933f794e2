//! One watch: waits for its kind to be installed, lists, follows changes, recovers from whatever ends the stream, and
//! notices when the kind is removed. Writes only into its own store.

use std::{
    pin::pin,
    sync::{Arc, OnceLock, PoisonError, RwLock},
    time::Duration,
};

use futures::StreamExt;
use kube::{
    Api, Client,
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use pilothouse_engine::contract::KindRef;
use tokio::{select, sync::watch, task::AbortHandle};

use super::{Change, Incoming, Reach, Scope, Sink, Store, backoff::WatchBackoff};
use crate::{
    client::chain,
    kinds::{self, Installed},
    labels,
};

/// How often a kind that is not installed is asked for.
const PROBE: Duration = Duration::from_secs(1);

/// How far a watch is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing is known yet.
    Starting,
    /// The cluster does not have the kind; it is waited for.
    NotInstalled,
    /// The cluster refuses or does not answer; the text says why. Tried again all the time.
    Failing(String),
    /// The store held a complete listing and follows changes.
    Synced,
}

/// A kind being watched. Dropping the last reference ends the watch.
#[derive(Debug)]
pub struct Watched {
    shared: Arc<Shared>,
    task: OnceLock<AbortHandle>,
}

#[derive(Debug)]
struct Shared {
    reach: Reach,
    kind: KindRef,
    scope: Scope,
    store: Store,
    installed: RwLock<Option<Arc<Installed>>>,
    state: watch::Sender<State>,
}

impl Watched {
    pub(super) fn start(client: Client, reach: Reach, kind: KindRef, scope: Scope, sink: Arc<dyn Sink>) -> Arc<Self> {
        let shared = Arc::new(Shared {
            reach,
            kind,
            scope,
            store: Store::default(),
            installed: RwLock::default(),
            state: watch::Sender::new(State::Starting),
        });
        let task = tokio::spawn(run(client, shared.clone(), sink)).abort_handle();
        Arc::new(Self { shared, task: OnceLock::from(task) })
    }

    /// The kind.
    pub fn kind(&self) -> &KindRef {
        &self.shared.kind
    }

    /// Its objects. Their absence means something only once the store is synced.
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// How the API server serves the kind, none while it is not installed.
    pub fn installed(&self) -> Option<Arc<Installed>> {
        self.shared.installed.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How far the watch is.
    pub fn state(&self) -> State {
        self.shared.state.borrow().clone()
    }

    /// Waits until the watch's state satisfies a condition.
    pub async fn until(&self, condition: impl FnMut(&State) -> bool) {
        // The sender lives as long as `self`, so waiting cannot fail.
        if let Err(closed) = self.shared.state.subscribe().wait_for(condition).await {
            tracing::error!("a watch's state is gone: {closed}");
        }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }
}

async fn run(client: Client, shared: Arc<Shared>, sink: Arc<dyn Sink>) {
    loop {
        let installed = Arc::new(shared.await_installed(&client).await);
        shared.set_installed(Some(installed.clone()));
        shared.follow(&client, &installed, &*sink).await;
        tracing::warn!(kind = %shared.kind, "the kind is no longer installed; waiting for it");
        shared.set_installed(None);
        shared.store.forget();
        shared.set_state(State::NotInstalled);
    }
}

impl Shared {
    fn set_state(&self, state: State) {
        self.state.send_if_modified(|current| {
            let changed = *current != state;
            *current = state;
            changed
        });
    }

    fn set_installed(&self, installed: Option<Arc<Installed>>) {
        *self.installed.write().unwrap_or_else(PoisonError::into_inner) = installed;
    }

    async fn await_installed(&self, client: &Client) -> Installed {
        loop {
            match kinds::find(client, &self.kind).await {
                Ok(Some(installed)) => return installed,
                Ok(None) => {
                    if *self.state.borrow() != State::NotInstalled {
                        tracing::warn!(kind = %self.kind, "the kind is not installed; apply its CustomResourceDefinition. Waiting for it");
                    }
                    self.set_state(State::NotInstalled);
                }
                Err(error) => {
                    self.failing(&format!("failed to ask the API server for {}: {}", self.kind, chain(&error)))
                }
            }
            tokio::time::sleep(PROBE).await;
        }
    }

    fn failing(&self, why: &str) {
        let state = State::Failing(why.to_owned());
        if *self.state.borrow() != state {
            tracing::warn!(kind = %self.kind, "{why}; trying again");
        }
        // A store that has synced stays usable while its watch is broken: it is only behind.
        if !self.store.is_synced() {
            self.set_state(state);
        }
    }

    /// Follows the kind until it is no longer installed.
    async fn follow(&self, client: &Client, installed: &Installed, sink: &dyn Sink) {
        let api = match self.reach.namespace.as_deref().filter(|_| installed.namespaced) {
            Some(namespace) => Api::<Incoming>::namespaced_with(client.clone(), namespace, &installed.resource),
            None => Api::all_with(client.clone(), &installed.resource),
        };
        let config = watcher::Config::default().timeout(self.reach.renewal_seconds());
        let config = match self.scope {
            Scope::All => config,
            Scope::Children => config.labels(labels::PLUGIN),
        };
        loop {
            let is_installed = select! {
                is_installed = self.follow_from_now(client, &api, &config, installed, sink) => is_installed,
                () = self.until_a_write_is_missed() => true,
            };
            if !is_installed {
                return;
            }
            tokio::time::sleep(PROBE).await;
        }
    }

    /// Waits until the watch has not brought a write of this process for as long as a watch lasts.
    async fn until_a_write_is_missed(&self) {
        let patience = Duration::from_secs(self.reach.renewal_seconds().into());
        loop {
            tokio::time::sleep(patience).await;
            if self.store.misses_a_write(patience) {
                break;
            }
        }
        tracing::warn!(kind = %self.kind, "the watch does not bring what was written; listing anew");
    }

    /// Lists and follows; whether the kind is still installed in the end.
    async fn follow_from_now(
        &self,
        client: &Client,
        api: &Api<Incoming>,
        config: &watcher::Config,
        installed: &Installed,
        sink: &dyn Sink,
    ) -> bool {
        let mut stream = pin!(watcher(api.clone(), config.clone()).backoff(WatchBackoff::default()));
        while let Some(event) = stream.next().await {
            let error = match event {
                Ok(event) => {
                    self.take(event, installed, sink);
                    continue;
                }
                Err(error) => error,
            };
            if code(&error) == Some(404) && matches!(kinds::find(client, &self.kind).await, Ok(None)) {
                return false;
            }
            self.failing(&format!("failed to watch {}: {}", self.kind, chain(&error)));
            // The watcher would ask for the same past for ever.
            if code(&error) == Some(410) {
                return true;
            }
        }
        true
    }

    fn take(&self, event: Event<Incoming>, installed: &Installed, sink: &dyn Sink) {
        let tell = |change: &Change| sink.changed(&self.kind, self.scope, change);
        match event {
            Event::Init => self.store.listing_begins(),
            Event::InitApply(object) | Event::Apply(object) => {
                let object = object.into_object(&installed.resource);
                let name = object.name.clone();
                if let Some(change) = self.store.saw(object) {
                    tell(&change);
                } else if let Some(known) = self.store.get(&name) {
                    sink.echoed(&self.kind, self.scope, &known);
                }
            }
            Event::Delete(object) => {
                if let Some(change) = self.store.saw_deleted(&object.into_object(&installed.resource)) {
                    tell(&change);
                }
            }
            Event::InitDone => {
                self.store.listing_done().iter().for_each(tell);
                if *self.state.borrow() != State::Synced {
                    self.set_state(State::Synced);
                    tracing::debug!(kind = %self.kind, objects = self.store.len(), "cache synced");
                    sink.synced(&self.kind, self.scope);
                }
            }
        }
    }
}

/// The HTTP status with which the API server answered instead of listing or watching.
fn code(error: &watcher::Error) -> Option<u16> {
    let (watcher::Error::InitialListFailed(error)
    | watcher::Error::WatchStartFailed(error)
    | watcher::Error::WatchFailed(error)) = error
    else {
        return None;
    };
    if let kube::Error::Api(status) = error { Some(status.code) } else { None }
}
