//! The host: installs and removes plugins, and runs the loop that takes keys from the queue and reconciles them. Runs in the
//! caller's tokio runtime and does not know where plugins come from.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use kube::Client;
use pilothouse_engine::{Manifest, Reconciler, contract::KindRef};
use tokio::{
    task::JoinSet,
    time::{Instant, Interval, MissedTickBehavior},
};

use crate::{
    cache::{Caches, Informer, WatchConfig, WatchState},
    client::fence::Fence,
    clock::{Clock, Random},
    events::Recorder,
    identity::Identities,
    leader::{Post, Posts, Worker},
    lookups::{Contents, LookupIndex},
    metrics::Metrics,
    object::ObjectRef,
    observable::Observable,
    pipeline::{LastReconcile, Pipeline, state::hot_loop::HotLoops, trigger::Trigger, work_item::Context},
    plugin::{
        ActivePlugin, Division, KindsRecord, Leaver, PluginSettings, Presence, RecordKey, Registry, SelfCheck,
        StartingPlugins, Versions,
    },
    queue::{Key, Queue},
    schema::SchemaCache,
};

/// The number of parts into which a resync is spread, so that it causes no burst.
const RESYNC_PARTS: u64 = 1_000;

/// How long the host waits for pending Events to be written when it stops.
const EVENTS_GRACE: Duration = Duration::from_secs(3);

/// The configuration of a host.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The only namespace to watch; none means all namespaces.
    pub namespace: Option<String>,
    /// The host's own namespace, for the record of child kinds.
    pub own_namespace: String,
    /// Decides whether the host may write. While it may not, plugins stand by.
    pub fence: Fence,
    /// What this host works for, if several share the work; none if it works for all plugins while it may write.
    pub posts: Option<Arc<Posts>>,
    /// The number of objects of one plugin that are reconciled at once.
    pub concurrency: usize,
    /// The period in which every object is reconciled even without a change, spread evenly over it.
    pub resync: Duration,
    /// How long a watch request lasts before it is renewed. A dead watch goes unnoticed for little longer than that.
    pub watch_renewal: Duration,
    /// How long reconciles in progress may take to end when the host stops.
    pub grace: Duration,
    /// Whether the host is not ready as long as it has no plugin.
    pub needs_plugin: bool,
    /// The configurations of plugins by name, as JSON text.
    pub plugin_configs: BTreeMap<String, Arc<str>>,
    /// The bytes that may be taken to remember what objects have looked up.
    pub lookup_memory: usize,
    /// The source of the time of day.
    pub clock: Clock,
    /// The source of random numbers for jitter.
    pub random: Random,
    /// The schemas that are parsed already. By default, none are kept.
    pub schemas: SchemaCache,
    /// Whether a plugin that starts has its rights checked.
    pub rights_check: RightsCheck,
}

/// Whether the host asks the API server for its own rights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RightsCheck {
    /// It does when a plugin starts.
    #[default]
    AtStart,
    /// It does not: they are known.
    Never,
}

impl Default for HostConfig {
    /// Watches all namespaces, with `default` as its own. Reconciles 4 objects per plugin at once. Resyncs every 10 h, like
    /// controller-runtime. Renews watches every minute, which is how often the API server sends bookmarks. Allows 25 s to stop,
    /// which is within a pod's default of 30 s.
    fn default() -> Self {
        Self {
            namespace: None,
            own_namespace: "default".to_owned(),
            fence: Fence::open(),
            posts: None,
            concurrency: 4,
            resync: Duration::from_secs(36_000),
            watch_renewal: Duration::from_secs(60),
            grace: Duration::from_secs(25),
            needs_plugin: true,
            plugin_configs: BTreeMap::new(),
            lookup_memory: 64 << 20,
            clock: Clock::system(),
            random: Random::from_system(),
            schemas: SchemaCache::default(),
            rights_check: RightsCheck::AtStart,
        }
    }
}

/// A source loads the plugins that exist already, until this is dropped.
pub struct Loading(Arc<Host>);

impl Drop for Loading {
    fn drop(&mut self) {
        self.0.loading.update(|sources| *sources -= 1);
    }
}

/// A version of a plugin that is to work.
#[derive(Clone)]
pub struct LineupVersion {
    /// The version.
    pub reconciler: Arc<dyn Reconciler>,
    /// What the cluster says of it. The versions of a plugin differ in their configuration at most.
    pub settings: PluginSettings,
}

/// The versions of a plugin that are to work.
#[derive(Clone)]
pub struct Lineup {
    /// The version that answers whatever no other one does.
    pub stable: LineupVersion,
    /// The others. They reconcile the same kind.
    pub others: Vec<LineupVersion>,
    /// Which objects each of them answers; none if there is only one.
    pub division: Option<Arc<Division>>,
    /// The finalizers that objects may have because of one of them, or of one before.
    pub finalizers: Arc<BTreeSet<String>>,
}

impl Lineup {
    fn manifest(&self) -> &Manifest {
        self.stable.reconciler.manifest()
    }

    fn post(&self) -> Post {
        RecordKey::of(self.manifest()).post()
    }
}

/// What is installed, where hosts share the work.
#[derive(Default)]
struct Enlisted {
    /// What each plugin goes on with when it is this host's turn again.
    lineups: BTreeMap<String, Lineup>,
    /// The plugins of which something may be under way for a post.
    workers: BTreeMap<Post, BTreeSet<String>>,
}

/// The versions of a plugin that get ready.
struct PreparedVersions {
    stable: ActivePlugin,
    others: Vec<ActivePlugin>,
}

impl PreparedVersions {
    fn all(&self) -> impl Iterator<Item = &ActivePlugin> {
        std::iter::once(&self.stable).chain(&self.others)
    }

    fn all_mut(&mut self) -> impl Iterator<Item = &mut ActivePlugin> {
        std::iter::once(&mut self.stable).chain(&mut self.others)
    }

    async fn until_ready(&self) {
        for plugin in self.all() {
            plugin.until_ready().await;
        }
    }
}

/// The kinds that are not among the declared ones, in whatever version.
fn undeclared(kinds: &BTreeSet<KindRef>, declared: &[KindRef]) -> BTreeSet<KindRef> {
    kinds.iter().filter(|kind| !declared.iter().any(|declared| kind.is_same_kind(declared))).cloned().collect()
}

/// A running host.
pub struct Host {
    config: HostConfig,
    caches: Caches,
    queue: Arc<Queue>,
    pipeline: Arc<Pipeline>,
    plugins: Arc<Registry>,
    trigger: Arc<Trigger>,
    metrics: Arc<Metrics>,
    identities: Arc<Identities>,
    record: KindsRecord,
    rights: Arc<SelfCheck>,
    starting: Mutex<StartingPlugins>,
    enlisted: Mutex<Enlisted>,
    /// How many sources are still loading the plugins that exist already.
    loading: Observable<usize>,
    /// How often a version of a plugin has begun to work.
    begun: Observable<u64>,
}

impl Host {
    /// A host without plugins. Needs a tokio runtime.
    pub fn new(client: Client, metrics: Arc<Metrics>, config: HostConfig) -> Arc<Self> {
        let queue = Arc::new(Queue::new(config.concurrency, config.random.clone()));
        let (plugins, lookups) = (Arc::<Registry>::default(), Arc::new(LookupIndex::within(config.lookup_memory)));
        let hot_loops = Arc::<HotLoops>::default();
        let trigger = Trigger::new(queue.clone(), plugins.clone(), lookups.clone(), hot_loops.clone());
        let trigger = Arc::new(trigger);
        metrics.register_queue(&queue);
        let identities = Arc::new(Identities::new(client.clone()));
        let context = Context {
            identities: identities.clone(),
            lookups,
            contents: Arc::<Contents>::default(),
            events: Recorder::start(client.clone(), config.clock.clone()),
            metrics: metrics.clone(),
            clock: config.clock.clone(),
        };
        let namespace = config.namespace.as_deref();
        let (renewal, schemas) = (config.watch_renewal, config.schemas.clone());
        let watches = WatchConfig { namespace: namespace.map(Arc::from), renewal, schemas };
        Arc::new(Self {
            record: KindsRecord::new(client.clone(), &config.own_namespace, namespace),
            rights: SelfCheck::new(client.clone(), namespace, metrics.clone()),
            caches: Caches::new(client, watches, trigger.clone()),
            pipeline: Arc::new(Pipeline::new(context, plugins.clone(), hot_loops)),
            config,
            queue,
            plugins,
            trigger,
            metrics,
            identities,
            starting: Mutex::default(),
            enlisted: Mutex::default(),
            loading: Observable::new(0),
            begun: Observable::new(0),
        })
    }

    /// A source starts to load the plugins that exist already. The host is not ready until it is told the end of it, so that a
    /// rolling update keeps the previous host until this one has all plugins.
    pub fn begin_loading(self: &Arc<Self>) -> Loading {
        self.loading.update(|sources| *sources += 1);
        Loading(self.clone())
    }

    /// The host's metrics.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// The number of objects of which anything is remembered between two reconciles.
    pub fn remembered_objects(&self) -> usize {
        self.pipeline.remembered_objects().max(self.queue.remembered_keys())
    }

    /// What the last reconciles of an object did, one for each plugin that works on it, as far as it is remembered.
    pub fn last_reconciles(&self, group: &str, kind: &str, object: &ObjectRef) -> Vec<LastReconcile> {
        let all = self.plugins.all();
        let own = all.iter().map(|versions| versions.stable()).filter(|plugin| {
            let works_on = plugin.objects.kind();
            works_on.group() == group && works_on.kind == kind
        });
        let keys = own.map(|plugin| Key { plugin: plugin.name.clone(), object: object.clone() });
        keys.filter_map(|key| self.pipeline.last_reconcile(&key)).collect()
    }

    /// Activates a plugin as soon as it is ready. Until then the present version stays active. Without a configuration in its settings it
    /// has that of [`HostConfig::plugin_configs`].
    pub fn install(self: &Arc<Self>, reconciler: Arc<dyn Reconciler>, settings: PluginSettings) {
        let (stable, finalizers) = (LineupVersion { reconciler, settings }, Arc::default());
        self.install_versions(Lineup { stable, others: Vec::new(), division: None, finalizers });
    }

    /// The same for several versions of a plugin that divide its objects among them.
    pub fn install_versions(self: &Arc<Self>, lineup: Lineup) {
        let name = lineup.manifest().name.clone();
        let (host, key, presence) = (self.clone(), name.clone(), lineup.stable.settings.presence);
        self.enlist(&name, &lineup);
        // Here and not in the task: a version that stands by goes on with the caches of the one that works yet.
        let prepared = self.begin(lineup);
        // The lock is held until `begin`. Otherwise the task could call `finish` first, and the plugin would count as starting for
        // ever.
        let mut starting = self.starting();
        let task = tokio::spawn(async move {
            let prepared = host.prepare(prepared).await;
            for plugin in prepared.all() {
                let manifest = plugin.manifest();
                tracing::info!(
                    plugin = manifest.name,
                    version = manifest.version,
                    objects = plugin.answered(),
                    "plugin at work"
                );
            }
            let (manifest, concurrency) = (prepared.stable.manifest(), prepared.stable.concurrency);
            // One lock for all steps: `not_ready` would otherwise find a moment at which the plugin is neither starting nor active.
            let mut starting = host.starting();
            if !host.has_room_for(&prepared.stable) {
                host.forgo(&key);
                return starting.finish(&key);
            }
            host.begin_work(&prepared.stable);
            if presence == Presence::AtWork {
                host.metrics.plugin_started(manifest, concurrency.unwrap_or(host.config.concurrency));
                host.queue.open(&manifest.name, concurrency);
            }
            let versions = host.plugins.start(prepared.stable, prepared.others);
            host.trigger.plugin_started(&versions);
            starting.finish(&key);
            host.begun.update(|times| *times += 1);
        });
        starting.begin(name, presence, task.abort_handle());
    }

    /// The configuration of the plugin of this name: that of its settings, else that of the command line.
    pub fn config_of(&self, plugin: &str, settings: &PluginSettings) -> Option<Arc<str>> {
        settings.config.clone().or_else(|| self.config.plugin_configs.get(plugin).cloned())
    }

    /// Starts the caches of a plugin.
    fn begin(&self, lineup: Lineup) -> PreparedVersions {
        let permit = self.config.posts.as_ref().map(|posts| posts.permit(&lineup.post()));
        let Lineup { stable, others, division, finalizers } = lineup;
        let begin = |LineupVersion { reconciler, settings }: LineupVersion| {
            let config = self.config_of(&reconciler.manifest().name, &settings);
            let mut plugin = ActivePlugin::new(reconciler, PluginSettings { config, ..settings }, &self.caches);
            (plugin.division, plugin.other_finalizers) = (division.clone(), finalizers.clone());
            plugin.permit = permit.clone();
            plugin
        };
        PreparedVersions { stable: begin(stable), others: others.into_iter().map(begin).collect() }
    }

    /// Prepares a plugin: waits for its caches, stands by until this host may write for it, and records its child kinds.
    async fn prepare(&self, mut prepared: PreparedVersions) -> PreparedVersions {
        if prepared.stable.presence == Presence::Departed {
            prepared.stable.until_ready().await;
            self.stands_by(&prepared.stable);
            self.until_its_turn(&prepared.stable).await;
            return prepared;
        }
        if self.config.rights_check == RightsCheck::AtStart {
            prepared.all().for_each(|plugin| self.rights.start(plugin));
        }
        let caches = async {
            prepared.until_ready().await;
            self.starting().set_standby(&prepared.stable.name, prepared.all());
            self.stands_by(&prepared.stable);
            if !self.is_its_turn(&prepared.stable) {
                for plugin in prepared.all() {
                    tracing::info!(plugin = %plugin.name, version = plugin.manifest().version, "plugin stands by");
                }
            }
        };
        // While the record waits for the fence, the caches fill. So a standby host can take over at once.
        let record = async {
            self.until_its_turn(&prepared.stable).await;
            self.record_kinds(&prepared).await
        };
        let missing = async {
            for plugin in prepared.all() {
                plugin.log_missing_kinds().await;
            }
        };
        let ((), recorded, ()) = tokio::join!(caches, record, missing);
        for plugin in prepared.all_mut() {
            let former = undeclared(&recorded, &plugin.manifest().children);
            plugin.watch_former(&former, &self.caches);
        }
        prepared.until_ready().await;
        self.forget_pruned(&mut prepared).await;
        prepared
    }

    /// A plugin could work at once.
    fn stands_by(&self, plugin: &ActivePlugin) {
        if let (Some(posts), Some(permit)) = (&self.config.posts, &plugin.permit) {
            posts.is_ready(&permit.post, &plugin.name);
        }
    }

    /// Waits until this host may write for a plugin.
    async fn until_its_turn(&self, plugin: &ActivePlugin) {
        match (&self.config.posts, &plugin.permit) {
            (Some(posts), Some(permit)) => posts.until_ours(&permit.post).await,
            _ => self.config.fence.until_open().await,
        }
    }

    /// Whether this host may write for a plugin.
    fn is_its_turn(&self, plugin: &ActivePlugin) -> bool {
        match (&self.config.posts, &plugin.permit) {
            (Some(posts), Some(permit)) => posts.is_ours(&permit.post),
            _ => self.config.fence.is_open(),
        }
    }

    /// Where hosts share the work, this one wants to work for a plugin from now on.
    fn enlist(&self, name: &str, lineup: &Lineup) {
        let Some(posts) = &self.config.posts else { return };
        let post = lineup.post();
        let before = self.enlisted().lineups.insert(name.to_owned(), lineup.clone());
        if let Some(before) = before.map(|before| before.post()).filter(|before| *before != post) {
            self.forgo_post(posts, &before, name);
        }
        self.metrics.election.register_plugin_lease(&posts.lease(&post));
        posts.want(&post, name, lineup.stable.settings.said_by.clone());
    }

    /// This host does not want to work for a plugin any more.
    fn forgo(&self, name: &str) {
        let Some(posts) = &self.config.posts else { return };
        let lineup = self.enlisted().lineups.remove(name);
        if let Some(lineup) = lineup {
            self.forgo_post(posts, &lineup.post(), name);
        }
    }

    fn forgo_post(&self, posts: &Posts, post: &Post, name: &str) {
        posts.forgo(post, name);
        if !posts.is_wanted(post) {
            self.metrics.election.forget_lease(&posts.lease(post));
        }
    }

    /// From now on, something of a plugin may be under way.
    fn begin_work(&self, plugin: &ActivePlugin) {
        if let Some(permit) = &plugin.permit {
            self.enlisted().workers.entry(permit.post.clone()).or_default().insert(plugin.name.to_string());
        }
    }

    /// Ends what this host does for a post. What is under way comes to its end.
    async fn end_work(self: &Arc<Self>, post: &Post) {
        let of_post =
            |versions: &Arc<Versions>| versions.stable().permit.as_ref().is_some_and(|permit| permit.post == *post);
        // Kept until those that take their places have the same caches.
        let at_work: Vec<_> = self.plugins.all().into_iter().filter(of_post).collect();
        let (lineups, workers) = {
            let mut enlisted = self.enlisted();
            let lineups = enlisted.lineups.values().filter(|lineup| lineup.post() == *post).cloned();
            (lineups.collect::<Vec<_>>(), enlisted.workers.remove(post).unwrap_or_default())
        };
        lineups.into_iter().for_each(|lineup| self.install_versions(lineup));
        at_work.iter().for_each(|versions| self.halt(&versions.stable().name));
        drop(at_work);
        for plugin in &workers {
            self.queue.until_idle(plugin).await;
        }
        if tokio::time::timeout(EVENTS_GRACE, self.events().flush()).await.is_err() {
            tracing::warn!("some Events were not written in time");
        }
    }

    /// Records the child kinds of all versions before the first of them works: one has to prune what another one has made. Returns all
    /// that are recorded.
    async fn record_kinds(&self, prepared: &PreparedVersions) -> BTreeSet<KindRef> {
        let manifest = prepared.stable.manifest();
        let recorded = RecordKey::of(manifest);
        let mut declared: Vec<KindRef> = Vec::new();
        for plugin in prepared.all() {
            // Two versions of a kind are one kind.
            let new = undeclared(&plugin.manifest().children.iter().cloned().collect(), &declared);
            declared.extend(new);
        }
        let former = self.record.add(recorded, &declared).await;
        let has_to_be_known =
            |plugin: &&ActivePlugin| plugin.manifest().orders_children || plugin.manifest().decorates.is_some();
        if let Some(ordering) = prepared.all().find(has_to_be_known) {
            self.record.add_leaver(&Leaver::of(ordering)).await;
        }
        declared.into_iter().chain(former).collect()
    }

    /// Takes kinds out of the record of which nothing is left. Not while another version works or is about to: its last calls, or its first
    /// ones, may still create children.
    async fn forget_pruned(&self, prepared: &mut PreparedVersions) {
        let plugin = &mut prepared.stable;
        if !prepared.others.is_empty() || self.plugins.get(&plugin.name).is_some() {
            return;
        }
        let pruned = plugin.drop_pruned();
        if !pruned.is_empty() {
            self.record.remove(RecordKey::of(plugin.manifest()), &pruned).await;
        }
    }

    /// Whether there is room for a plugin: one that is gone makes room for another one of its kind.
    fn has_room_for(&self, plugin: &ActivePlugin) -> bool {
        let is_same_kind =
            |other: &&Arc<ActivePlugin>| other.name != plugin.name && other.manifest().owns_kind_of(plugin.manifest());
        let all = self.plugins.all();
        for other in all.iter().map(|versions| versions.stable()).filter(is_same_kind) {
            match (plugin.presence, other.presence) {
                (Presence::Departed, _) => return false,
                (Presence::AtWork, Presence::Departed) => self.stop(&other.name),
                (Presence::AtWork, Presence::AtWork) => {}
            }
        }
        true
    }

    /// A plugin is gone. Its objects and their children stay as they are; those that are deleted lose their children in their order. Which
    /// may have an order is asked of the record, for an earlier version may have made them.
    pub fn depart(self: &Arc<Self>, name: &str) {
        self.remove(name);
        let host = self.clone();
        tokio::spawn(async move { host.take_up_departed().await });
    }

    /// Looks after what plugins have left behind that are not there, once those that exist are loaded. Resolves when that has begun.
    pub async fn take_up_departed(self: &Arc<Self>) {
        self.loading.wait_for(|sources| *sources == 0).await;
        for (leaver, children) in self.leavers().await.into_iter().filter(|(leaver, _)| !leaver.decorates) {
            let is_same = |versions: &Arc<Versions>| versions.stable().owns(&leaver.reconciles());
            if !self.starting().has(&leaver.plugin) && !self.plugins.all().iter().any(is_same) {
                let (departed, settings) = leaver.departed(children);
                self.install(departed, settings);
            }
        }
    }

    /// The plugins of which something may be left, with the kinds of their children. Waits until this host leads.
    pub(crate) async fn leavers(&self) -> Vec<(Leaver, BTreeSet<KindRef>)> {
        if let Some(posts) = &self.config.posts {
            posts.lead().until_open().await;
        }
        self.config.fence.until_open().await;
        self.record.leavers().await
    }

    /// Forgets a plugin of which nothing is left.
    pub(crate) async fn forget_leaver(&self, leaver: &Leaver) {
        self.stop(&leaver.plugin);
        self.record.remove_leaver(leaver).await;
    }

    /// Whether a plugin is at work, or starts.
    pub(crate) fn has(&self, plugin: &str) -> bool {
        self.starting().has(plugin) || self.plugins.get(plugin).is_some()
    }

    /// Removes a plugin. Its objects and their children stay as they are.
    pub fn remove(&self, name: &str) {
        self.starting().cancel(name);
        self.stop(name);
        tracing::info!(plugin = name, "plugin removed; its objects stay as they are");
    }

    fn stop(&self, name: &str) {
        self.halt(name);
        self.rights.stop(name);
        self.forgo(name);
    }

    /// Takes a plugin from work.
    fn halt(&self, name: &str) {
        // Before the states are forgotten: a reconcile that ends after this does not put its state back.
        self.plugins.stop(name);
        self.trigger.plugin_stopped(name);
        self.pipeline.forget_plugin(name);
        self.metrics.plugin_stopped(name);
    }

    /// Records Events.
    pub fn events(&self) -> &Recorder {
        self.pipeline.events()
    }

    /// Waits until a version of some plugin has begun to work since this many of them had, and returns how many have by then.
    pub async fn begun_since(&self, times: u64) -> u64 {
        self.begun.wait_for(|begun| *begun != times).await;
        self.begun.get()
    }

    /// The version of a plugin that is at work.
    pub fn active_plugin(&self, name: &str) -> Option<Arc<ActivePlugin>> {
        self.plugins.get(name)
    }

    /// All versions of a plugin that are at work.
    pub fn active_versions(&self, name: &str) -> Option<Arc<Versions>> {
        self.plugins.versions(name)
    }

    /// The caches.
    pub fn caches(&self) -> &Caches {
        &self.caches
    }

    /// The clients of accounts.
    pub fn identities(&self) -> &Arc<Identities> {
        &self.identities
    }

    /// The time of day.
    pub fn clock(&self) -> &Clock {
        &self.config.clock
    }

    /// What this host works for, if several share the work.
    pub fn posts(&self) -> Option<&Arc<Posts>> {
        self.config.posts.as_ref()
    }

    /// The host's own namespace.
    pub fn own_namespace(&self) -> &str {
        &self.config.own_namespace
    }

    /// The recorded child kinds of which a version with this manifest may find children and which it does not declare; none if nothing is
    /// recorded.
    ///
    /// # Errors
    /// The error of the request.
    pub async fn former_kinds(&self, manifest: &Manifest) -> Result<Option<BTreeSet<KindRef>>, kube::Error> {
        self.record.former(RecordKey::of(manifest), &manifest.children).await
    }

    /// Whether this host tells what becomes of a `Plugin`: the one that works for it does, and as long as none does, the one that leads. What
    /// it has loaded is known by its manifest.
    pub fn may_tell_of(&self, plugin: &str, loaded: Option<&Manifest>) -> bool {
        let Some(posts) = &self.config.posts else { return self.config.fence.is_open() };
        match loaded.map(|manifest| RecordKey::of(manifest).post()) {
            Some(post) => posts.is_ours(&post) || posts.leads_without(&post),
            None => posts.leads_without_said_by(plugin),
        }
    }

    /// The reasons why the host is not ready; empty if it is.
    pub fn not_ready(&self) -> Vec<String> {
        let (starting, plugins) = (self.starting(), self.plugins.at_work());
        // A host that may not write is ready as soon as its plugins stand by.
        let not_ready = self.starting_here(&starting);
        let mut reasons: Vec<_> = not_ready.iter().map(|name| format!("plugin '{name}' is starting")).collect();
        reasons.extend(self.record.problem());
        let loading = self.loading.get() > 0;
        reasons.extend(loading.then(|| "plugins are being loaded".to_owned()));
        if self.config.needs_plugin && !loading && starting.names().is_empty() && plugins.is_empty() {
            reasons.push("no plugin is loaded".to_owned());
        }
        let is_required = |informer: &Arc<Informer>| {
            let requires =
                |plugin: &Arc<ActivePlugin>| plugin.required().any(|required| Arc::ptr_eq(required, informer));
            !not_ready.is_empty() || starting.requires(informer) || plugins.iter().any(requires)
        };
        for informer in self.caches.informers().into_iter().filter(is_required) {
            match informer.state() {
                WatchState::Synced => {}
                WatchState::Starting => reasons.push(format!("the cache of {} is not filled yet", informer.kind())),
                WatchState::NotInstalled => reasons.push(format!("{} is not installed", informer.kind())),
                WatchState::Failing(failure) => reasons.push(failure.why),
            }
        }
        reasons.sort();
        reasons
    }

    /// Reconciles until `stop` resolves. Then lets reconciles in progress end and writes pending Events.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut in_progress = JoinSet::new();
        let mut resync = Resync::every(self.config.resync);
        let mut permissions = std::pin::pin!(self.follow_permissions());
        loop {
            tokio::select! {
                biased;
                () = &mut stop => break,
                () = &mut permissions => {}
                part = resync.next() => self.trigger.resync(part, RESYNC_PARTS),
                // `next` takes a key in the same step in which it returns it, so no key is lost when another branch is chosen.
                key = self.queue.next() => {
                    let Some(key) = key else { break };
                    let (pipeline, queue) = (self.pipeline.clone(), self.queue.clone());
                    in_progress.spawn(async move {
                        let outcome = pipeline.reconcile(&key, queue.failures(&key)).await;
                        queue.done(&key, outcome.action, outcome.pause);
                    });
                    // A `JoinSet` keeps finished tasks until they are joined.
                    while in_progress.try_join_next().is_some() {}
                }
            }
        }
        self.queue.close();
        let ended = async { while in_progress.join_next().await.is_some() {} };
        if tokio::time::timeout(self.config.grace, ended).await.is_err() {
            tracing::warn!("some reconciles did not end in time; the next host takes them up");
        }
        if tokio::time::timeout(EVENTS_GRACE, self.events().flush()).await.is_err() {
            tracing::warn!("some Events were not written in time");
        }
    }

    /// Wakes the objects of accounts whose permissions change, for ever.
    async fn follow_permissions(&self) {
        loop {
            let changed = self.identities.until_changed().await;
            changed.iter().for_each(|account| self.trigger.permissions_changed(account));
        }
    }

    /// The plugins for which this host is not what it is to be: at work, or on standby.
    fn starting_here(&self, starting: &StartingPlugins) -> Vec<String> {
        let Some(posts) = &self.config.posts else {
            return if self.config.fence.is_open() { starting.names() } else { starting.waiting_for_caches() };
        };
        let enlisted = self.enlisted();
        let is_ours = |name: &String| enlisted.lineups.get(name).is_some_and(|lineup| posts.is_ours(&lineup.post()));
        let at_work = starting.names().into_iter().filter(is_ours);
        at_work.chain(starting.waiting_for_caches()).collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn enlisted(&self) -> MutexGuard<'_, Enlisted> {
        self.enlisted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn starting(&self) -> MutexGuard<'_, StartingPlugins> {
        self.starting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Worker for Host {
    fn stand_by(self: Arc<Self>, post: Post) -> BoxFuture<'static, ()> {
        async move { self.end_work(&post).await }.boxed()
    }
}

/// The timer of the periodic resync.
struct Resync {
    ticks: Interval,
    part: u64,
}

impl Resync {
    fn every(period: Duration) -> Self {
        // An interval of zero panics.
        let tick = (period / RESYNC_PARTS as u32).max(Duration::from_millis(1));
        let mut ticks = tokio::time::interval_at(Instant::now() + tick, tick);
        // The default is to make up for missed ticks: after a suspension, many objects would be reconciled at once.
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { ticks, part: 0 }
    }

    /// Waits until the next part of the objects is due.
    async fn next(&mut self) -> u64 {
        self.ticks.tick().await;
        self.part = (self.part + 1) % RESYNC_PARTS;
        self.part
    }
}
