//! One informer: waits until its kind is installed, lists and watches it, recovers when the stream ends, and notices when the
//! kind is removed. Writes only into its own store.

use std::{
    pin::pin,
    sync::{Arc, OnceLock, PoisonError, RwLock},
    time::Duration,
};

use futures::StreamExt;
use kube::{
    Api, Client, Resource,
    core::{ApiResource, DynamicResourceScope, PartialObjectMeta},
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use pilothouse_engine::contract::KindRef;
use tokio::{select, task::AbortHandle};

use super::{
    Change, EventHandler, Store, WatchConfig, WatchScope, backoff::WatchBackoff, discovery::Discovery,
    schema_cell::SchemaCell, schema_reader::SchemaReader,
};
use crate::{
    errors::{chain, code, may_pass, watch_code, watch_error},
    kinds::{self, InstalledKind},
    labels,
    object::Incoming,
    observable::Observable,
    schema::Schema,
};

/// The interval at which the API server is asked for a kind that is not installed: the first one and the longest one.
const FIRST_PROBE: Duration = Duration::from_secs(1);
const MAX_PROBE: Duration = Duration::from_secs(10);

/// The factor between two intervals.
const PROBE_GROWTH: f64 = 1.25;

/// How long an object that changed is not packed at most.
const UNPACKED: Duration = Duration::from_secs(10);

/// So many objects are packed before others have their turn: some tenth of a millisecond.
const PACKED_AT_ONCE: usize = 32;

/// How often a watch is restarted at most.
const RESTART_DELAY: Duration = Duration::from_secs(1);

/// The state of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WatchState {
    /// The API server has not answered yet.
    Starting,
    /// The cluster does not have the kind; the informer waits for it.
    NotInstalled,
    /// The API server refuses the request or does not answer. The informer keeps trying.
    Failing(WatchFailure),
    /// The store has held a complete listing and follows changes.
    Synced,
}

/// Why a watch fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchFailure {
    /// A sentence.
    pub why: String,
    /// Whether it may pass without a change of the cluster: the API server has too much to do or is not there, and refuses nothing.
    pub may_pass: bool,
}

/// Where a watch reads from.
struct Source<'a> {
    client: &'a Client,
    namespace: Option<&'a str>,
    config: watcher::Config,
    installed: &'a InstalledKind,
}

impl Source<'_> {
    fn api<K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>>(&self) -> Api<K> {
        let (client, resource) = (self.client.clone(), &self.installed.resource);
        match self.namespace {
            Some(namespace) => Api::namespaced_with(client, namespace, resource),
            None => Api::all_with(client, resource),
        }
    }
}

/// What all informers share.
#[derive(Clone)]
pub(super) struct InformerParts {
    pub(super) client: Client,
    pub(super) schemas: Arc<SchemaReader>,
    pub(super) discovery: Arc<Discovery>,
    pub(super) config: WatchConfig,
    pub(super) handler: Arc<dyn EventHandler>,
}

/// A watched kind with its store, like client-go's informer. Dropping the last reference ends the watch.
#[derive(Debug)]
pub struct Informer {
    shared: Arc<Shared>,
    task: OnceLock<AbortHandle>,
}

#[derive(Debug)]
struct Shared {
    config: WatchConfig,
    kind: KindRef,
    scope: WatchScope,
    store: Arc<Store>,
    installed: RwLock<Option<Arc<InstalledKind>>>,
    schema: SchemaCell,
    state: Observable<WatchState>,
}

impl Informer {
    pub(super) fn start(kind: KindRef, scope: WatchScope, store: Arc<Store>, parts: InformerParts) -> Arc<Self> {
        let shared = Arc::new(Shared {
            config: parts.config.clone(),
            kind,
            scope,
            store,
            installed: RwLock::default(),
            schema: SchemaCell::default(),
            state: Observable::new(WatchState::Starting),
        });
        let task = tokio::spawn(run(shared.clone(), parts)).abort_handle();
        Arc::new(Self { shared, task: OnceLock::from(task) })
    }

    /// The kind.
    pub fn kind(&self) -> &KindRef {
        &self.shared.kind
    }

    /// The cached objects. That one is missing means something only once the store is synced.
    pub fn store(&self) -> &Store {
        &self.shared.store
    }

    /// How the API server serves the kind; none while it is not installed.
    pub fn installed(&self) -> Option<Arc<InstalledKind>> {
        self.shared.installed.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The kind's schema; none while it is unknown.
    pub fn schema(&self) -> Option<Schema> {
        self.shared.schema.get()
    }

    /// Requests a check of the schema, because an object has a field that the schema does not declare. The schema is read again
    /// once the API server has another one.
    pub fn recheck_schema(&self) {
        self.shared.schema.recheck();
    }

    /// The state of the watch.
    pub fn state(&self) -> WatchState {
        self.shared.state.get()
    }

    /// Waits until the state of the watch satisfies a condition.
    pub async fn until(&self, condition: impl FnMut(&WatchState) -> bool) {
        self.shared.state.wait_for(condition).await;
    }
}

impl Drop for Informer {
    fn drop(&mut self) {
        if let Some(task) = self.task.get() {
            task.abort();
        }
    }
}

async fn run(shared: Arc<Shared>, parts: InformerParts) {
    let InformerParts { client, schemas, discovery, handler, .. } = parts;
    loop {
        let installed = Arc::new(shared.await_installed(&discovery).await);
        shared.set_installed(Some(installed.clone()));
        // The schema of a child kind decides what is applied, so the kind is not watched before the schema was read. Kinds of the
        // built-in table need not wait.
        if shared.scope == WatchScope::Children && !Schema::is_built_in(&shared.kind.api_version, &shared.kind.kind) {
            shared.schema.load(&schemas, &shared.kind).await;
        }
        select! {
            biased;
            () = shared.follow(&client, &installed, &*handler) => {}
            () = shared.follow_schema(&schemas, &*handler) => {}
            () = shared.pack_what_rests() => {}
        }
        tracing::warn!(kind = %shared.kind, "the kind is no longer installed as it was; waiting for it");
        shared.set_installed(None);
        shared.schema.clear();
        shared.store.clear();
        shared.set_state(WatchState::NotInstalled);
    }
}

impl Shared {
    fn set_state(&self, state: WatchState) {
        self.state.set(state);
    }

    fn set_installed(&self, installed: Option<Arc<InstalledKind>>) {
        *self.installed.write().unwrap_or_else(PoisonError::into_inner) = installed;
    }

    async fn await_installed(&self, discovery: &Discovery) -> InstalledKind {
        let mut delay = FIRST_PROBE;
        loop {
            match discovery.find(&self.kind).await {
                Ok(Some(installed)) => return installed,
                Ok(None) => {
                    self.set_state(WatchState::NotInstalled);
                }
                Err(error) => {
                    let why = format!("failed to ask the API server for {}: {}", self.kind, chain(&error));
                    self.failing(WatchFailure { why, may_pass: may_pass(code(&error)) });
                }
            }
            tokio::time::sleep(delay).await;
            delay = delay.mul_f64(PROBE_GROWTH).min(MAX_PROBE);
        }
    }

    fn failing(&self, failure: WatchFailure) {
        let state = WatchState::Failing(failure.clone());
        if self.state.get() != state {
            tracing::warn!(kind = %self.kind, "{}; trying again", failure.why);
        }
        // A synced store stays usable while its watch is broken: it only lags behind.
        if !self.store.is_synced() {
            self.set_state(state);
        }
    }

    /// Reads the kind's schema once the store is synced, and again when a check was requested and the schema has changed. It is not
    /// read earlier because other requests of a starting host are more urgent. Never returns.
    async fn follow_schema(&self, schemas: &SchemaReader, handler: &dyn EventHandler) {
        self.state.wait_for(|state| *state == WatchState::Synced).await;
        if self.schema.get().is_none() {
            self.schema.load(schemas, &self.kind).await;
        }
        loop {
            self.schema.until_changed(schemas, &self.kind).await;
            handler.synced(&self.kind, &self.scope);
        }
    }

    /// Packs objects some seconds after they changed. Never returns.
    async fn pack_what_rests(&self) {
        loop {
            self.store.until_unpacked().await;
            tokio::time::sleep(UNPACKED).await;
            for (packed, name) in self.store.take_unpacked().iter().enumerate() {
                self.store.pack(name);
                if packed % PACKED_AT_ONCE == PACKED_AT_ONCE - 1 {
                    tokio::task::yield_now().await;
                }
            }
        }
    }

    /// Watches the kind until it is no longer installed.
    async fn follow(&self, client: &Client, installed: &InstalledKind, handler: &dyn EventHandler) {
        let config = watcher::Config::default().timeout(self.config.renewal_seconds());
        let config = match &self.scope {
            WatchScope::All => config,
            WatchScope::Children => config.labels(labels::PLUGIN),
            WatchScope::LookedUp { labels, .. } => config.labels(labels),
        };
        let namespace = self.config.namespace.as_deref().filter(|_| installed.namespaced);
        let source = Source { client, namespace, config, installed };
        loop {
            let is_installed = select! {
                biased;
                is_installed = self.list_and_watch(&source, handler) => is_installed,
                // This drops the watcher. The next one begins with a list, which shows what became of the write.
                () = self.until_a_write_is_overdue() => true,
            };
            if !is_installed {
                return;
            }
            tokio::time::sleep(RESTART_DELAY).await;
        }
    }

    /// Waits until the watch has failed to deliver a write of this process for as long as one watch request lasts.
    async fn until_a_write_is_overdue(&self) {
        let limit = Duration::from_secs(self.config.renewal_seconds().into());
        loop {
            tokio::time::sleep(limit).await;
            if self.store.has_overdue_write(limit) {
                break;
            }
        }
        tracing::warn!(kind = %self.kind, "the watch does not deliver a write of this host; listing again");
    }

    /// Whether the kind is not installed any more as this source reads it. A CRD that is deleted and created again in another scope
    /// leaves no other trace than a new list: the path of the whole cluster is the same for both scopes.
    async fn is_outdated(&self, source: &Source<'_>) -> bool {
        match kinds::find(source.client, &self.kind).await {
            Ok(found) => found.is_none_or(|found| !found.is_read_like(source.installed)),
            // What cannot be asked is taken to be as it was: otherwise each fault of the API server would empty the store.
            Err(_) => false,
        }
    }

    /// Lists and watches. Returns whether the kind is still installed when that ends.
    async fn list_and_watch(&self, source: &Source<'_>, handler: &dyn EventHandler) -> bool {
        let config = source.config.clone();
        let events = match self.scope {
            WatchScope::LookedUp { metadata_only: true, .. } => {
                watcher(source.api(), config).map(|event| event.and_then(of_metadata)).left_stream()
            }
            _ => watcher(source.api(), config).right_stream(),
        };
        let mut stream = pin!(events.backoff(WatchBackoff::default()));
        while let Some(event) = stream.next().await {
            let error = match event {
                Ok(Event::Init) if self.store.is_synced() && self.is_outdated(source).await => return false,
                Ok(event) => {
                    self.handle(event, source.installed, handler);
                    continue;
                }
                Err(error) => error,
            };
            if watch_code(&error) == Some(404) && self.is_outdated(source).await {
                return false;
            }
            let why = format!("failed to watch {}: {}", self.kind, watch_error(&error));
            self.failing(WatchFailure { why, may_pass: may_pass(watch_code(&error)) });
            // 410 Gone: kube's watcher would request the same expired resource version for ever, so a new watcher lists again.
            if watch_code(&error) == Some(410) {
                return true;
            }
        }
        true
    }

    fn handle(&self, event: Event<Incoming>, installed: &InstalledKind, handler: &dyn EventHandler) {
        let notify = |change: &Change| handler.changed(&self.kind, &self.scope, change);
        match event {
            Event::Init => self.store.on_list_start(),
            Event::InitApply(object) | Event::Apply(object) => {
                let object = object.into_object(&installed.resource);
                let name = object.name.clone();
                if let Some(change) = self.store.on_watch_apply(object) {
                    notify(&change);
                } else if let Some(known) = self.store.get(&name) {
                    handler.echoed(&self.kind, &self.scope, &known);
                }
            }
            Event::Delete(object) => {
                if let Some(change) = self.store.on_watch_delete(&object.into_object(&installed.resource)) {
                    notify(&change);
                }
            }
            Event::InitDone => {
                self.store.on_list_done().iter().for_each(notify);
                // A list after a broken watch is no new sync: the line above has passed its changes on.
                if self.state.get() != WatchState::Synced {
                    self.set_state(WatchState::Synced);
                    tracing::debug!(kind = %self.kind, objects = self.store.len(), "cache synced");
                    handler.synced(&self.kind, &self.scope);
                }
            }
        }
    }
}

/// An event about metadata as one about an object that has nothing else.
fn of_metadata(event: Event<PartialObjectMeta<Incoming>>) -> Result<Event<Incoming>, watcher::Error> {
    let unreadable = |error| watcher::Error::WatchFailed(kube::Error::SerdeError(error));
    let object = |meta: PartialObjectMeta<Incoming>| Incoming::of_metadata(&meta.metadata).map_err(unreadable);
    Ok(match event {
        Event::Init => Event::Init,
        Event::InitDone => Event::InitDone,
        Event::InitApply(meta) => Event::InitApply(object(meta)?),
        Event::Apply(meta) => Event::Apply(object(meta)?),
        Event::Delete(meta) => Event::Delete(object(meta)?),
    })
}
