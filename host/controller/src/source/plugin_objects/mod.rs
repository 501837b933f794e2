//! Plugins as objects of the cluster: follows `Plugin` objects and the ConfigMaps that they name, loads what they ask for, and writes
//! what became of it into their status. Reconciles no other object.
//!
//! # Flow
//!
//! A watch of `Plugin`s and one of the ConfigMaps' metadata say which plugins to look at. [`PluginObjects`] looks at each anew: reads the
//! component (`content.rs`), has it loaded if it differs from what is at work, and writes the status (`status.rs`) if that differs.
//!
//! # Guarantees
//!
//! - The version at work goes on, whatever becomes of its source, until the `Plugin` is deleted or suspended.
//! - A `Plugin` that names a digest never leads to another component.
//! - A host that may not write loads plugins like any other, to take over at once. It writes no status.
//!
//! # Caveats
//!
//! Without the CRD of `Plugin` there are none. The watch waits for it.

mod content;
mod status;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures::{Stream, StreamExt, stream::BoxStream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Resource, ResourceExt,
    api::{Patch, PatchParams},
    core::PartialObjectMeta,
    runtime::{WatchStreamExt, watcher, watcher::Event},
};
use pilothouse_engine::contract::KindRef;
use serde_json::{Value, json};

use self::{
    content::{Component, ContentError},
    status::{AtWork, Load, Standing, status},
};
use super::loader::{Loader, NotLoaded, SourceId};
use crate::{
    api::{KindName, ObjectCounts, Plugin, PluginSpec, PluginStatus, ServiceAccountNamespace},
    cache::WatchState,
    errors::chain,
    host::Loading,
    identity::{Account, AccountNamespace},
    labels,
    pipeline::{
        conditions::{READY, STALLED},
        lifecycle::finalizer,
    },
    plugin::{ActivePlugin, Grants, PluginSettings},
    readiness::is_true,
    selector::Selector,
};

/// How often all plugins are looked at without a change: for passing failures, and for the counts in their status.
const PERIOD: Duration = Duration::from_secs(5);

/// Follows the `Plugin` objects of a cluster.
pub struct PluginObjects {
    client: Client,
    namespace: String,
    loader: Arc<Loader>,
    /// Until those that exist already are loaded.
    loading: Option<Loading>,
    plugins: BTreeMap<String, Arc<Plugin>>,
    /// What was found when a plugin was looked at last.
    known: BTreeMap<String, Known>,
}

/// What was found when a plugin was looked at last.
struct Known {
    load: Load,
    /// The loader's changes at that time, if another plugin was in the way.
    blocked_at: Option<u64>,
}

impl Known {
    fn new(load: Load) -> Self {
        Self { load, blocked_at: None }
    }
}

/// A change to look at.
enum Change {
    /// A `Plugin` came or changed.
    Applied(Arc<Plugin>),
    /// A `Plugin` is gone.
    Deleted(String),
    /// All `Plugin`s that there are.
    All(Vec<Arc<Plugin>>),
    /// A ConfigMap came, changed or went.
    ConfigMap(String),
    /// Time has passed.
    Tick,
}

impl PluginObjects {
    /// Follows the `Plugin`s of the cluster whose ConfigMaps are in this namespace.
    pub fn new(client: Client, namespace: &str, loader: Arc<Loader>) -> Self {
        let loading = Some(loader.host().begin_loading());
        let (plugins, known) = (BTreeMap::new(), BTreeMap::new());
        Self { client, namespace: namespace.to_owned(), loader, loading, plugins, known }
    }

    /// Follows them for ever.
    pub async fn follow(mut self) {
        let mut changes = self.changes();
        while let Some(change) = changes.next().await {
            self.take(change).await;
        }
    }

    fn changes(&self) -> BoxStream<'static, Change> {
        let plugins = watcher(Api::<Plugin>::all(self.client.clone()), watcher::Config::default());
        let maps = Api::<PartialObjectMeta<ConfigMap>>::namespaced(self.client.clone(), &self.namespace);
        let maps = watcher(maps, watcher::Config::default());
        let ticks = futures::stream::unfold((), |()| async {
            tokio::time::sleep(PERIOD).await;
            Some((Change::Tick, ()))
        });
        let all: [BoxStream<'static, Change>; 3] = [
            plugin_changes(plugins.default_backoff()).boxed(),
            map_changes(maps.default_backoff()).boxed(),
            ticks.boxed(),
        ];
        futures::stream::select_all(all).boxed()
    }

    async fn take(&mut self, change: Change) {
        match change {
            Change::Applied(plugin) => self.apply(plugin).await,
            Change::Deleted(name) => self.remove(&name).await,
            Change::All(plugins) => {
                let found: BTreeSet<_> = plugins.iter().map(|plugin| plugin.name_any()).collect();
                let gone: Vec<_> = self.plugins.keys().filter(|name| !found.contains(*name)).cloned().collect();
                for name in gone {
                    self.remove(&name).await;
                }
                for plugin in plugins {
                    self.apply(plugin).await;
                }
                self.loading = None;
            }
            Change::ConfigMap(name) => {
                let uses = |plugin: &&Arc<Plugin>| content::names(&plugin.spec.source.config_map).contains(&name);
                let users: Vec<_> = self.plugins.values().filter(uses).map(|plugin| plugin.name_any()).collect();
                for plugin in users {
                    self.look_at(&plugin).await;
                }
            }
            Change::Tick => self.tick().await,
        }
    }

    /// A `Plugin` came or changed. One whose spec is the same asks for nothing new: most changes are our own of its status.
    async fn apply(&mut self, plugin: Arc<Plugin>) {
        let name = plugin.name_any();
        let before = self.plugins.insert(name.clone(), plugin.clone());
        match before.is_some_and(|before| before.spec == plugin.spec && before.uid() == plugin.uid()) {
            true => self.report(&name).await,
            false => self.look_at(&name).await,
        }
    }

    /// A `Plugin` is gone, and with it its plugin. That may have been in the way of others.
    async fn remove(&mut self, name: &str) {
        self.plugins.remove(name);
        self.known.remove(name);
        if self.loader.remove(&SourceId::Object(name.to_owned())) {
            self.look_again().await;
        }
    }

    /// Tries again what may have passed, and brings the status of all others up to date.
    async fn tick(&mut self) {
        self.look_again().await;
        let names: Vec<_> = self.plugins.keys().cloned().collect();
        for name in names {
            self.report(&name).await;
        }
    }

    /// Looks again at what failed for a reason that may have passed, and at those for which another plugin may have made room.
    async fn look_again(&mut self) {
        let changes = self.loader.changes();
        let is_worth_it = |known: &Known| {
            let is_passing = matches!(known.load, Load::Failed { is_passing: true, .. });
            is_passing || known.blocked_at.is_some_and(|blocked_at| blocked_at != changes)
        };
        let known = self.known.iter().filter(|(_, known)| is_worth_it(known));
        let again: Vec<_> = known.map(|(name, _)| name.clone()).collect();
        for name in again {
            self.look_at(&name).await;
        }
    }

    /// Does what a `Plugin` asks for, and reports it.
    async fn look_at(&mut self, name: &str) {
        let Some(plugin) = self.plugins.get(name).cloned() else { return };
        let known = self.load(&plugin).await;
        self.known.insert(name.to_owned(), known);
        self.report(name).await;
    }

    async fn load(&self, plugin: &Plugin) -> Known {
        let id = SourceId::Object(plugin.name_any());
        if plugin.spec.suspended {
            self.loader.remove(&id);
            return Known::new(Load::Suspended);
        }
        let api = Api::namespaced(self.client.clone(), &self.namespace);
        let Component { bytes, digest } = match content::read(&api, &plugin.spec).await {
            Ok(component) => component,
            Err(error) => return of_content(&error),
        };
        let settings = self.settings(&plugin.spec);
        if self.loader.has(&id, &digest, &settings) {
            return Known::new(Load::Loaded);
        }
        // Before the load: what goes during it may be what is in the way.
        let changes = self.loader.changes();
        match self.loader.load(&id, bytes, settings).await {
            Ok(_) => Known::new(Load::Loaded),
            Err(error) => of_load(&error, changes),
        }
    }

    fn settings(&self, spec: &PluginSpec) -> PluginSettings {
        let account = spec.service_account_name.as_deref().map(|name| Account {
            name: name.into(),
            namespace: match spec.service_account_namespace {
                ServiceAccountNamespace::Host => AccountNamespace::Fixed(self.namespace.as_str().into()),
                ServiceAccountNamespace::Object => AccountNamespace::OfObject,
            },
        });
        PluginSettings {
            config: spec.config.as_ref().map(|config| Arc::from(config.to_string())),
            grants: Grants::Granted(spec.grants.clone()),
            account,
            namespaces: spec.namespaces.as_ref().map(Selector::from),
        }
    }

    /// Writes the status of a `Plugin` if it differs.
    async fn report(&mut self, name: &str) {
        let (Some(plugin), Some(known)) = (self.plugins.get(name), self.known.get(name)) else { return };
        if !self.loader.host().may_write() {
            return;
        }
        let standing = Standing { load: known.load.clone(), at_work: self.at_work(name) };
        let before = plugin.status.clone().unwrap_or_default();
        let wanted = status(&standing, plugin.metadata.generation.unwrap_or_default(), &before, Timestamp::now());
        if wanted == before {
            return;
        }
        match self.write(plugin, &wanted).await {
            Ok(()) => {
                let mut written = Plugin::clone(plugin);
                written.status = Some(wanted);
                self.plugins.insert(name.to_owned(), written.into());
            }
            // The next look at it, a few seconds later, tries again.
            Err(error) => tracing::warn!(plugin = name, "failed to write the status of the Plugin: {}", chain(&error)),
        }
    }

    async fn write(&self, plugin: &Plugin, status: &PluginStatus) -> Result<(), kube::Error> {
        let api = Api::<Plugin>::all(self.client.clone());
        let body = json!({
            "apiVersion": Plugin::api_version(&()), "kind": Plugin::kind(&()),
            // A Plugin of the same name that was created meanwhile is another one.
            "metadata": {"uid": plugin.metadata.uid},
            "status": status,
        });
        let parameters = PatchParams::apply(labels::HOST).force();
        api.patch_status(&plugin.name_any(), &parameters, &Patch::Apply(body)).await.map(drop)
    }

    /// The version of a `Plugin` at work.
    fn at_work(&self, name: &str) -> Option<AtWork> {
        let loaded = self.loader.loaded(&SourceId::Object(name.to_owned()))?;
        self.loader.host().active_plugin(&loaded.name).map(|active| at_work(&active))
    }
}

fn of_content(error: &ContentError) -> Known {
    let load = Load::Failed { reason: error.reason(), message: error.to_string(), is_passing: error.is_passing() };
    Known::new(load)
}

fn of_load(error: &NotLoaded, changes: u64) -> Known {
    let load = Load::Failed { reason: error.reason(), message: error.to_string(), is_passing: error.is_passing() };
    Known { blocked_at: error.is_conflict().then_some(changes), ..Known::new(load) }
}

fn at_work(active: &ActivePlugin) -> AtWork {
    let manifest = active.manifest();
    let obstacles = active.required().filter_map(|informer| match informer.state() {
        WatchState::Synced => None,
        WatchState::NotInstalled => Some(format!("{} is not installed", informer.kind())),
        WatchState::Starting => Some(format!("the cache of {} is not filled yet", informer.kind())),
        WatchState::Failing(why) => Some(why),
    });
    AtWork {
        version: manifest.version.clone(),
        digest: active.reconciler.digest().to_owned(),
        contract: manifest.contract.clone(),
        reconciles: kind_name(&manifest.reconciles),
        children: manifest.children.iter().map(kind_name).collect(),
        finalizers: finalizer::all_of(manifest),
        objects: counts(active),
        obstacles: obstacles.collect(),
    }
}

fn kind_name(kind: &KindRef) -> KindName {
    KindName { api_version: kind.api_version.clone(), kind: kind.kind.clone() }
}

fn counts(active: &ActivePlugin) -> ObjectCounts {
    let objects = active.objects.store().select(None, |_| true);
    let mut counts = ObjectCounts { total: objects.len(), ..ObjectCounts::default() };
    for object in objects {
        let status = Value::Object(object.status());
        counts.ready += usize::from(is_true(&status, READY));
        counts.failing += usize::from(is_true(&status, STALLED));
    }
    counts
}

/// The changes of `Plugin`s. A failing watch is told once and goes on by itself.
fn plugin_changes(
    events: impl Stream<Item = watcher::Result<Event<Plugin>>> + Send + 'static,
) -> impl Stream<Item = Change> + Send {
    let (mut listed, mut is_told) = (Vec::new(), false);
    events.filter_map(move |event| {
        if let (Err(error), false) = (&event, is_told) {
            let help = "apply crds/plugins.pilothouse.dev.yaml, and grant the host to watch plugins.pilothouse.dev";
            tracing::warn!("the Plugins are not known: {}; {help}. Trying again", chain(error));
        }
        is_told = event.is_err();
        let change = match event {
            Ok(Event::Apply(plugin)) => Some(Change::Applied(plugin.into())),
            Ok(Event::Delete(plugin)) => Some(Change::Deleted(plugin.name_any())),
            Ok(Event::Init) => {
                listed.clear();
                None
            }
            Ok(Event::InitApply(plugin)) => {
                listed.push(Arc::new(plugin));
                None
            }
            Ok(Event::InitDone) => Some(Change::All(std::mem::take(&mut listed))),
            Err(_) => None,
        };
        std::future::ready(change)
    })
}

fn map_changes(
    events: impl Stream<Item = watcher::Result<Event<PartialObjectMeta<ConfigMap>>>> + Send + 'static,
) -> impl Stream<Item = Change> + Send {
    events.filter_map(|event| {
        let change = match event {
            Ok(Event::Apply(map) | Event::Delete(map) | Event::InitApply(map)) => {
                Some(Change::ConfigMap(map.name_any()))
            }
            Ok(Event::Init | Event::InitDone) => None,
            Err(error) => {
                tracing::debug!("the ConfigMaps of plugins are not known: {}", chain(&error));
                None
            }
        };
        std::future::ready(change)
    })
}
