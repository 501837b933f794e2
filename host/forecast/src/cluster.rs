//! What a plugin's version would see of a cluster: caches that are filled once, as the host fills them when a version starts. Makes reads
//! only.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use kube::Client;
use pilothouse_controller::{
    cache::{Caches, Change, EventHandler, Informer, WatchConfig, WatchScope, WatchState},
    clock::Clock,
    errors::chain,
    host::Host,
    identity::{Identities, ServiceAccount},
    lookups::{CachedLookups, Contents, Needed, Reader},
    object::{Object, ObjectRef},
    plugin::{ActivePlugin, KindsRecord, RecordKey},
    schema::SchemaCache,
    source::plugin_objects::PlannedVersion,
};
use pilothouse_engine::contract::KindRef;

/// How long a watch request lasts before it is renewed.
const WATCH_RENEWAL: Duration = Duration::from_secs(60);

/// How long a failure is waited out that may pass.
const PATIENCE: Duration = Duration::from_secs(60);

/// Why a cluster cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The cluster does not have the kind of the objects.
    #[error("the cluster has no {0}; apply its CustomResourceDefinition")]
    NotInstalled(KindRef),
    /// A kind cannot be read.
    #[error("{0}")]
    Failing(String),
    /// Objects of one namespace are asked for, and they have none.
    #[error("objects of kind {0} belong to the whole cluster; leave the namespace out")]
    ClusterScoped(KindRef),
    /// The record of child kinds cannot be read.
    #[error("failed to read the record of child kinds in namespace '{namespace}': {}", chain(error))]
    Record {
        /// The namespace of the host.
        namespace: String,
        /// The error of the request.
        error: kube::Error,
    },
}

/// What a host sees of a cluster, and where it is.
#[derive(Clone, Debug)]
pub struct Place {
    /// The only namespace that the host watches; none for all.
    pub watched: Option<String>,
    /// The namespace of the host, which records there which child kinds plugins had.
    pub host_namespace: String,
}

/// Who reads children from the API server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChildReader {
    /// Whoever asks: a person, who need not be allowed to act as the plugin's account.
    Asker,
    /// The plugin's account, where it has one, as for its writes: a host need not be allowed to read children one by one.
    Account,
}

/// What a plugin's version would see of a cluster.
pub struct Cluster {
    pub(crate) plugin: ActivePlugin,
    pub(crate) identities: Arc<Identities>,
    /// What is in the objects of which only the metadata is watched, as far as it was looked up.
    pub(crate) contents: Arc<Contents>,
    pub(crate) clock: Clock,
    /// Whether the host has recorded child kinds of the plugin.
    is_recorded: bool,
    /// Who reads whether a child's name is taken.
    child_reader: ChildReader,
    /// The only namespace whose objects are asked about; none for all. What they look up and own is seen wherever it is.
    only: Option<String>,
}

impl Cluster {
    /// Reads what the version would see. Waits until all of it is there.
    ///
    /// # Errors
    /// [`ReadError`]: something of it cannot be read.
    pub async fn read(client: Client, planned: PlannedVersion, place: &Place) -> Result<Self, ReadError> {
        let watches = WatchConfig {
            namespace: place.watched.as_deref().map(Arc::from),
            renewal: WATCH_RENEWAL,
            schemas: SchemaCache::default(),
        };
        let caches = Caches::new(client.clone(), watches, Arc::new(NobodyListens));
        let plugin = seen(planned, &caches).await?;
        let former = former(&client, &plugin, place).await?;
        let (identities, clock) = (Arc::new(Identities::new(client)), Clock::system());
        Self::filled(plugin, former, &caches, identities, clock).await
    }

    /// The same in a running host, whose caches have most of it.
    ///
    /// # Errors
    /// [`ReadError`]: something of it cannot be read.
    pub async fn of_host(host: &Host, mut planned: PlannedVersion) -> Result<Self, ReadError> {
        planned.settings.config = host.config_of(&planned.version.manifest().name, &planned.settings);
        let plugin = seen(planned, host.caches()).await?;
        let former = host.former_kinds(plugin.manifest()).await;
        let former = former.map_err(|error| record_error(host.own_namespace(), error))?;
        let cluster =
            Self::filled(plugin, former, host.caches(), host.identities().clone(), host.clock().clone()).await?;
        Ok(Self { child_reader: ChildReader::Account, ..cluster })
    }

    /// Waits until the caches have all that the version needs to see.
    async fn filled(
        mut plugin: ActivePlugin,
        former: Option<BTreeSet<KindRef>>,
        caches: &Caches,
        identities: Arc<Identities>,
        clock: Clock,
    ) -> Result<Self, ReadError> {
        let is_recorded = former.is_some();
        plugin.watch_former(&former.unwrap_or_default(), caches);
        for informer in plugin.informers().chain(plugin.former.values()) {
            until_known(informer).await?;
        }
        plugin.begin_work();
        let contents = Arc::<Contents>::default();
        Ok(Self { plugin, identities, contents, clock, is_recorded, child_reader: ChildReader::Asker, only: None })
    }

    /// The same, and only objects of this namespace are asked about.
    ///
    /// # Errors
    /// [`ReadError::ClusterScoped`].
    pub fn asking_only(mut self, namespace: String) -> Result<Self, ReadError> {
        if self.plugin.objects.installed().is_some_and(|installed| !installed.namespaced) {
            return Err(ReadError::ClusterScoped(self.plugin.objects.kind().clone()));
        }
        self.only = Some(namespace);
        Ok(self)
    }

    /// Whether a host in the given namespace has recorded which child kinds the plugin had. Otherwise nobody can tell which children of
    /// kinds that it no longer declares would be deleted.
    pub fn is_recorded(&self) -> bool {
        self.is_recorded
    }

    /// The names of all objects that are asked about, in their order: those that it works on; for a decorator also those from which it would
    /// take away what it has made.
    pub fn names(&self) -> Vec<ObjectRef> {
        let plugin = &self.plugin;
        let has_children = |object: &Object| {
            let mut watched = plugin.children.values().chain(plugin.former.values());
            watched.any(|informer| informer.store().owned_by(&object.uid).iter().any(|child| plugin.has_child(child)))
        };
        let is_concerned =
            |object: &Arc<Object>| plugin.selects(object) || plugin.is_decorated(object) || has_children(object);
        let all = plugin.objects.store().select(self.only.as_deref(), |_| true);
        let mut names: Vec<_> = all.into_iter().filter(is_concerned).map(|object| object.name.clone()).collect();
        names.sort();
        names
    }

    /// Lookups of one object, with the permissions of the plugin's account.
    pub(crate) fn lookups(&self, object: &ObjectRef) -> CachedLookups {
        CachedLookups {
            namespace: object.namespace.clone(),
            kinds: self.plugin.lookups.clone(),
            served: self.plugin.namespaces.clone(),
            reader: self.account(object).map(|account| Reader::new(account, self.identities.clone())),
            contents: self.contents.clone(),
            needed: Arc::<Needed>::default(),
        }
    }

    /// The client that reads children of one object from the API server.
    pub(crate) fn child_reader(&self, object: &ObjectRef) -> Client {
        let account = self.account(object).filter(|_| self.child_reader == ChildReader::Account);
        self.identities.client(account.as_ref())
    }

    /// The account that the plugin works with for an object; none for the host's own.
    pub(crate) fn account(&self, object: &ObjectRef) -> Option<ServiceAccount> {
        self.plugin.account.as_ref().map(|account| account.for_namespace(&object.namespace))
    }
}

/// What the version would see, once its objects are known.
async fn seen(planned: PlannedVersion, caches: &Caches) -> Result<ActivePlugin, ReadError> {
    let PlannedVersion { version, settings, division } = planned;
    let mut plugin = ActivePlugin::new(version, settings, caches);
    plugin.division = division;
    match until_known(&plugin.objects).await? {
        Installation::There => Ok(plugin),
        Installation::Missing => Err(ReadError::NotInstalled(plugin.objects.kind().clone())),
    }
}

fn record_error(namespace: &str, error: kube::Error) -> ReadError {
    ReadError::Record { namespace: namespace.to_owned(), error }
}

/// The recorded child kinds that a version no longer declares; none if a host has recorded nothing.
async fn former(client: &Client, plugin: &ActivePlugin, place: &Place) -> Result<Option<BTreeSet<KindRef>>, ReadError> {
    let (manifest, namespace) = (plugin.manifest(), &place.host_namespace);
    let mut all: Option<BTreeSet<KindRef>> = None;
    // A host that watches one namespace only has a record of its own.
    for watched in std::iter::once(None).chain(place.watched.as_deref().map(Some)) {
        let record = KindsRecord::new(client.clone(), namespace, watched);
        let found = record.former(RecordKey::of(manifest), &manifest.children).await;
        let found = found.map_err(|error| record_error(namespace, error))?;
        if let Some(found) = found {
            all.get_or_insert_default().extend(found);
        }
    }
    Ok(all)
}

/// Whether a kind is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Installation {
    There,
    Missing,
}

/// Waits until an informer has all objects of its kind, or knows that there is no such kind.
async fn until_known(informer: &Informer) -> Result<Installation, ReadError> {
    informer.until(|state| *state != WatchState::Starting).await;
    let is_known = |state: &WatchState| !matches!(state, WatchState::Failing(failure) if failure.may_pass);
    // A kind that was installed a moment ago is refused for some seconds, and so is anything by a busy API server. What is still so
    // afterwards is the answer, and in the state.
    tokio::time::timeout(PATIENCE, informer.until(is_known)).await.ok();
    match informer.state() {
        WatchState::Synced => Ok(Installation::There),
        WatchState::NotInstalled => Ok(Installation::Missing),
        WatchState::Failing(failure) => Err(ReadError::Failing(failure.why)),
        // `until` has waited for another one, and no informer starts twice.
        WatchState::Starting => Err(ReadError::Failing(format!("{} is not read yet", informer.kind()))),
    }
}

/// Nothing follows from changes while a forecast is made.
struct NobodyListens;

impl EventHandler for NobodyListens {
    fn changed(&self, _: &KindRef, _: &WatchScope, _: &Change) {}

    fn echoed(&self, _: &KindRef, _: &WatchScope, _: &Object) {}

    fn synced(&self, _: &KindRef, _: &WatchScope) {}
}
