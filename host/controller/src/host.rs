//! The host: plugins come and go, keys come out of the queue and are reconciled. Everything runs in the caller's tokio
//! runtime; nothing here knows where plugins come from.

use std::{
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
    cache::{Caches, Reach, State, Watched},
    events::Recorder,
    leader::Fence,
    lookups::LookupIndex,
    metrics::Metrics,
    pipeline::{Pipeline, pace::Pace, trigger::Trigger},
    plugin::ActivePlugin,
    queue::Queue,
    record::Record,
    self_check::SelfCheck,
    starting::Starting,
};

/// Parts into which a resync is spread.
const RESYNC_PARTS: u64 = 1_000;

/// How long the writing of Events may take once nothing is reconciled any more.
const LAST_EVENTS: Duration = Duration::from_secs(3);

/// How a host is set up.
#[derive(Clone, Debug)]
pub struct HostConfig {
    /// The only namespace that is watched; none for all.
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
        }
    }
}

/// A running host.
pub struct Host {
    config: HostConfig,
    caches: Caches,
    queue: Arc<Queue>,
    pipeline: Arc<Pipeline>,
    trigger: Arc<Trigger>,
    metrics: Arc<Metrics>,
    record: Record,
    rights: Arc<SelfCheck>,
    starting: Mutex<Starting>,
    /// Whether plugins that are there already have yet to be loaded.
    loading: AtomicBool,
}

impl Host {
    /// A host without plugins. Needs a tokio runtime.
    pub fn new(client: Client, metrics: Arc<Metrics>, config: HostConfig) -> Arc<Self> {
        let queue = Arc::new(Queue::new(config.concurrency));
        let lookups = Arc::new(LookupIndex::default());
        let pace = Arc::new(Pace::default());
        let trigger = Arc::new(Trigger::new(queue.clone(), lookups.clone(), pace.clone()));
        metrics.follow(&queue);
        let events = Recorder::start(client.clone());
        let pipeline = Pipeline::new(client.clone(), trigger.clone(), lookups, events, metrics.clone(), pace);
        let reach = Reach { namespace: config.namespace.as_deref().map(Arc::from), renewal: config.watch_renewal };
        let record = Record::new(client.clone(), &config.own_namespace, config.namespace.as_deref());
        let rights = SelfCheck::new(client.clone(), config.namespace.as_deref(), metrics.clone());
        Arc::new(Self {
            record,
            rights,
            caches: Caches::new(client, reach, trigger.clone()),
            config,
            queue,
            pipeline: Arc::new(pipeline),
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
            host.trigger.start(plugin);
            starting.end(&key);
        });
        starting.begin(name, task.abort_handle());
    }

    /// Makes a plugin ready to work: its caches filled, its child kinds recorded. Stands by in between.
    async fn prepare(&self, reconciler: Arc<dyn Reconciler>) -> ActivePlugin {
        let mut plugin = ActivePlugin::new(reconciler, &self.caches);
        self.rights.start(&plugin);
        let Manifest { reconciles, children, .. } = plugin.manifest().clone();
        let warm = async {
            plugin.until_settled().await;
            self.starting().warm(&plugin);
            if !self.config.fence.is_open() {
                tracing::info!(plugin = %plugin.name, version = plugin.manifest().version, "plugin stands by");
            }
        };
        let record = async {
            self.config.fence.until_open().await;
            self.record.add(&reconciles, &children).await
        };
        let ((), former) = tokio::join!(warm, record);
        plugin.watch_former(&former, &self.caches);
        plugin.until_settled().await;
        // While another version was at work, its last calls may still make children.
        if self.trigger.plugin(&plugin.name).is_none() {
            let pruned = plugin.drop_pruned();
            if !pruned.is_empty() {
                self.record.remove(&reconciles, &pruned).await;
            }
        }
        plugin
    }

    /// Takes a plugin out of work. Its objects and their children stay as they are.
    pub fn remove(&self, name: &str) {
        self.starting().give_up(name);
        self.trigger.stop(name);
        self.pipeline.forget_plugin(name);
        self.metrics.plugin_stopped(name);
        tracing::info!(plugin = name, "plugin removed; its objects stay as they are");
    }

    /// What keeps the host from being ready; nothing when it is.
    pub fn not_ready(&self) -> Vec<String> {
        let (starting, plugins) = (self.starting(), self.trigger.plugins());
        // To stand by is all that a host can do that is not the leader.
        let late = if self.config.fence.is_open() { starting.names() } else { starting.cold() };
        let mut reasons: Vec<_> = late.iter().map(|name| format!("plugin '{name}' is starting")).collect();
        reasons.extend(self.record.trouble());
        let loading = self.loading.load(Ordering::Acquire);
        reasons.extend(loading.then(|| "plugins are being loaded".to_owned()));
        if !loading && starting.names().is_empty() && plugins.is_empty() {
            reasons.push("no plugin is loaded".to_owned());
        }
        let is_needed = |watched: &Arc<Watched>| {
            let needs = |plugin: &Arc<ActivePlugin>| plugin.needed().any(|needed| Arc::ptr_eq(needed, watched));
            !late.is_empty() || starting.needs(watched) || plugins.iter().any(needs)
        };
        for watched in self.caches.watches().into_iter().filter(is_needed) {
            match watched.state() {
                State::Synced => {}
                State::Starting => reasons.push(format!("the cache of {} is not filled yet", watched.kind())),
                State::NotInstalled => reasons.push(format!("{} is not installed", watched.kind())),
                State::Failing(why) => reasons.push(why),
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
                        let (next, pause) = pipeline.reconcile(&key).await;
                        queue.done(&key, next, pause);
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
        if tokio::time::timeout(LAST_EVENTS, self.pipeline.events.flush()).await.is_err() {
            tracing::warn!("some Events were not written in time");
        }
    }

    fn starting(&self) -> MutexGuard<'_, Starting> {
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
