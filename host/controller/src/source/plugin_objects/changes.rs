//! What changes: the `Plugin`s, and the ConfigMaps that they may name. Looks at nothing.

use std::{sync::Arc, time::Duration};

use futures::{Stream, StreamExt, stream::BoxStream};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    core::PartialObjectMeta,
    runtime::{WatchStreamExt, watcher, watcher::Event},
};

use crate::{
    api::{self, Plugin},
    errors::chain,
    object::Incoming,
};

/// How often all plugins are looked at without a change: for passing failures, and for the counts in their status.
const PERIOD: Duration = Duration::from_secs(5);

/// A change to look at.
pub enum Change {
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

/// The changes of all `Plugin`s, and of the ConfigMaps in a namespace.
pub fn changes(client: &Client, namespace: &str) -> BoxStream<'static, Change> {
    let plugins = watcher(api::plugins(client.clone()), watcher::Config::default());
    let maps = Api::<PartialObjectMeta<ConfigMap>>::namespaced(client.clone(), namespace);
    let maps = watcher(maps, watcher::Config::default());
    let ticks = futures::stream::unfold((), |()| async {
        tokio::time::sleep(PERIOD).await;
        Some((Change::Tick, ()))
    });
    let all: [BoxStream<'static, Change>; 3] =
        [plugin_changes(plugins.default_backoff()).boxed(), map_changes(maps.default_backoff()).boxed(), ticks.boxed()];
    futures::stream::select_all(all).boxed()
}

/// The changes of `Plugin`s. A failing watch is told once and goes on by itself.
fn plugin_changes(
    events: impl Stream<Item = watcher::Result<Event<Incoming>>> + Send + 'static,
) -> impl Stream<Item = Change> + Send {
    let (mut listed, mut is_told) = (Vec::new(), false);
    events.filter_map(move |event| {
        if let (Err(error), false) = (&event, is_told) {
            let help = "apply crds/plugins.pilothouse.dev.yaml, and grant the host to watch plugins.pilothouse.dev";
            tracing::warn!("the Plugins are not known: {}; {help}. Trying again", chain(error));
        }
        is_told = event.is_err();
        let change = match event {
            Ok(Event::Apply(plugin)) => readable(plugin).map(Change::Applied),
            Ok(Event::Delete(plugin)) => Some(Change::Deleted(plugin.name_any())),
            Ok(Event::Init) => {
                listed.clear();
                None
            }
            Ok(Event::InitApply(plugin)) => {
                listed.extend(readable(plugin));
                None
            }
            Ok(Event::InitDone) => Some(Change::All(std::mem::take(&mut listed))),
            Err(_) => None,
        };
        std::future::ready(change)
    })
}

/// A `Plugin`, unless it cannot be read, which the CRD does not let happen.
fn readable(plugin: Incoming) -> Option<Arc<Plugin>> {
    let name = plugin.name_any();
    let told = |error: &serde_json::Error| tracing::warn!(plugin = name, "the Plugin cannot be read: {error}");
    api::read_plugin(plugin).inspect_err(told).ok().map(Arc::new)
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
