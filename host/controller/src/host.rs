//! The host: plugins come and go, keys come out of the queue and are reconciled. Everything runs in the caller's tokio
//! runtime; nothing here knows where plugins come from.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kube::Client;
use pilothouse_engine::{Manifest, Reconciler};
use tokio::{
    task::JoinSet,
    time::{Instant, Interval, MissedTickBehavior},
};

use crate::{
    cache::{Caches, Informer, WatchConfig, WatchState},
    client::fence::Fence,
    clock::{Clock, Random},
    events::Recorder,
    lookups::LookupIndex,
    metrics::Metrics,
    pipeline::{Pipeline, state::hot_loop::HotLoops, trigger::Trigger, work_item::Context},
    plugin::{ActivePlugin, KindsRecord, Registry, SelfCheck, StartingPlugins},
    queue::Queue,
};

/// Parts into which a resync is spread.
const RESYNC_PARTS: u64 = 1_000;

/// How long the writing of Events may take once nothing is reconciled any more.
const LAST_EVENTS: Duration = Duration::from_secs(3);

/// How a host is set up.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The only namespace that is informer; none for all.
    pub namespace: Option<String>,
    /// The host's own namespace, where it keeps what must outlive it.
    pub own_namespace: String,
    /// Whether the host may write; while it may not, plugins get ready and stand by.
    pub fence: Fence,
    /// Objects of one plugin that are reconciled at once.
    pub concurrency: usize,
    /// How often every object is reconciled without a reason, spread evenly over that time.
    pub resync: Duration,
    /// How long a watch lasts before it is renewed: how long one that has fallen silent can go unnoticed, nearly.
    pub watch_renewal: Duration,
    /// How long reconciles under way may take to end after the host is told to stop.
    pub grace: Duration,
    /// The configuration of plugins by name, as JSON text.
    pub plugin_configs: BTreeMap<String, Arc<str>>,
    /// Tells the time of day.
    pub clock: Clock,
    /// Random numbers for delays.
    pub random: Random,
}

impl Default for HostConfig {
    /// All namespaces, its own being `default`; 4 objects per plugin at once; resync after 10 h as controller-runtime has it;
    /// watches renewed every minute, as often as the API server sends bookmarks; 25 s to end, within a pod's default 30 s.
    fn default() -> Self {
        Self {
            namespace: None,
            own_namespace: "default".to_owned(),
            fence: Fence::open(),
            concurrency: 4,
            resync: Duration::from_secs(36_000),
            watch_renewal: Duration::from_secs(60),
            grace: Duration::from_secs(25),
            plugin_configs: BTreeMap::new(),
            clock: Clock::system(),
            random: Random::from_system(),
        }
    }
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
    record: KindsRecord,
    rights: Arc<SelfCheck>,
    starting: Mutex<StartingPlugins>,
    /// Whether plugins that are there already have yet to be loaded.
    loading: AtomicBool,
}

impl Host {
    /// A host without plugins. Needs a tokio runtime.
    pub fn new(client: Client, metrics: Arc<Metrics>, config: HostConfig) -> Arc<Self> {
        let queue = Arc::new(Queue::new(config.concurrency, config.random.clone()));
        let (plugins, lookups) = (Arc::<Registry>::default(), Arc::<LookupIndex>::default());
        let hot_loops = Arc::<HotLoops>::default();
        let trigger = Trigger::new(queue.clone(), plugins.clone(), lookups.clone(), hot_loops.clone());
        let trigger = Arc::new(trigger);
        metrics.register_queue(&queue);
        let context = Context {
            client: client.clone(),
            lookups,
            events: Recorder::start(client.clone(), config.clock.clone()),
            metrics: metrics.clone(),
            clock: config.clock.clone(),
        };
        let namespace = config.namespace.as_deref();
        let watches = WatchConfig { namespace: namespace.map(Arc::from), renewal: config.watch_renewal };
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
            starting: Mutex::default(),
            loading: AtomicBool::new(false),
        })
    }

    /// Says whether plugins that are there already have yet to be loaded. A host that comes to take the place of another one is
    /// not ready before it has all of them.
    pub fn loads(&self, loading: bool) {
        self.loading.store(loading, Ordering::Release);
    }

    /// The host's metrics.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Puts a plugin to work as soon as its caches are filled. A version that works now goes on until then.
    pub fn install(self: &Arc<Self>, reconciler: Arc<dyn Reconciler>) {
        let name = reconciler.manifest().name.clone();
        let (host, key) = (self.clone(), name.clone());
        let mut starting = self.starting();
        let task = tokio::spawn(async move {
            let plugin = host.prepare(reconciler).await;
            let manifest = plugin.manifest();
            tracing::info!(
                plugin = manifest.name,
                version = manifest.version,
                objects = plugin.objects.store().len(),
                "plugin at work"
            );
            host.metrics.plugin_started(manifest, host.config.concurrency);
            host.queue.open(&manifest.name);
            let mut starting = host.starting();
            let plugin = host.plugins.start(plugin);
            host.trigger.plugin_started(&plugin);
            starting.end(&key);
        });
        starting.begin(name, task.abort_handle());
    }

    /// Makes a plugin ready to work: its caches filled, its child kinds recorded. Stands by in between.
    async fn prepare(&self, reconciler: Arc<dyn Reconciler>) -> ActivePlugin {
        let config = self.config.plugin_configs.get(&reconciler.manifest().name).cloned();
        let mut plugin = ActivePlugin::new(reconciler, config.unwrap_or_else(|| "null".into()), &self.caches);
        self.rights.start(&plugin);
        let Manifest { reconciles, children, .. } = plugin.manifest().clone();
        let warm = async {
            plugin.until_ready().await;
            self.starting().warm(&plugin);
            if !self.config.fence.is_open() {
                tracing::info!(plugin = %plugin.name, version = plugin.manifest().version, "plugin stands by");
            }
        };
        let record = async {
            self.config.fence.until_open().await;
            self.record.add(&reconciles, &children).await
        };
        let ((), former, ()) = tokio::join!(warm, record, plugin.log_missing_kinds());
        plugin.watch_former(&former, &self.caches);
        plugin.until_ready().await;
        // While another version was at work, its last calls may still make children.
        if self.plugins.get(&plugin.name).is_none() {
            let pruned = plugin.drop_pruned();
            if !pruned.is_empty() {
                self.record.remove(&reconciles, &pruned).await;
            }
        }
        plugin
    }

    /// Takes a plugin out of work. Its objects and their children stay as they are.
    pub fn remove(&self, name: &str) {
        self.starting().cancel(name);
        self.plugins.stop(name);
        self.trigger.plugin_stopped(name);
        self.pipeline.forget_plugin(name);
        self.metrics.plugin_stopped(name);
        tracing::info!(plugin = name, "plugin removed; its objects stay as they are");
    }

    /// What keeps the host from being ready; nothing when it is.
    pub fn not_ready(&self) -> Vec<String> {
        let (starting, plugins) = (self.starting(), self.plugins.all());
        // To stand by is all that a host can do that is not the leader.
        let late = if self.config.fence.is_open() { starting.names() } else { starting.cold() };
        let mut reasons: Vec<_> = late.iter().map(|name| format!("plugin '{name}' is starting")).collect();
        reasons.extend(self.record.problem());
        let loading = self.loading.load(Ordering::Acquire);
        reasons.extend(loading.then(|| "plugins are being loaded".to_owned()));
        if !loading && starting.names().is_empty() && plugins.is_empty() {
            reasons.push("no plugin is loaded".to_owned());
        }
        let is_needed = |informer: &Arc<Informer>| {
            let needs = |plugin: &Arc<ActivePlugin>| plugin.required().any(|needed| Arc::ptr_eq(needed, informer));
            !late.is_empty() || starting.needs(informer) || plugins.iter().any(needs)
        };
        for informer in self.caches.informers().into_iter().filter(is_needed) {
            match informer.state() {
                WatchState::Synced => {}
                WatchState::Starting => reasons.push(format!("the cache of {} is not filled yet", informer.kind())),
                WatchState::NotInstalled => reasons.push(format!("{} is not installed", informer.kind())),
                WatchState::Failing(why) => reasons.push(why),
            }
        }
        reasons.sort();
        reasons
    }

    /// Reconciles until `stop` resolves, then lets what is under way end and writes the Events that wait.
    pub async fn run(&self, stop: impl Future<Output = ()>) {
        let mut stop = std::pin::pin!(stop);
        let mut under_way = JoinSet::new();
        let mut resync = Resync::every(self.config.resync);
        loop {
            tokio::select! {
                () = &mut stop => break,
                part = resync.next() => self.trigger.resync(part, RESYNC_PARTS),
                key = self.queue.next() => {
                    let Some(key) = key else { break };
                    let (pipeline, queue) = (self.pipeline.clone(), self.queue.clone());
                    under_way.spawn(async move {
                        let outcome = pipeline.reconcile(&key, queue.failures(&key)).await;
                        queue.done(&key, outcome.action, outcome.pause);
                    });
                    while under_way.try_join_next().is_some() {}
                }
            }
        }
        self.queue.close();
        let ended = async { while under_way.join_next().await.is_some() {} };
        if tokio::time::timeout(self.config.grace, ended).await.is_err() {
            tracing::warn!("some reconciles did not end in time; the next host takes them up");
        }
        if tokio::time::timeout(LAST_EVENTS, self.pipeline.flush_events()).await.is_err() {
            tracing::warn!("some Events were not written in time");
        }
    }

    fn starting(&self) -> MutexGuard<'_, StartingPlugins> {
        self.starting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The ticks of the periodic resync.
struct Resync {
    ticks: Interval,
    part: u64,
}

impl Resync {
    fn every(period: Duration) -> Self {
        let tick = (period / RESYNC_PARTS as u32).max(Duration::from_millis(1));
        let mut ticks = tokio::time::interval_at(Instant::now() + tick, tick);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { ticks, part: 0 }
    }

    /// Waits until the next part of the objects has its turn.
    async fn next(&mut self) -> u64 {
        self.ticks.tick().await;
        self.part = (self.part + 1) % RESYNC_PARTS;
        self.part
    }
}
