//! What changes: the `Plugin`s, and the ConfigMaps and files that they may name. Looks at nothing.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    path::Path,
    sync::Arc,
    time::Duration,
};

use futures::{
    Stream, StreamExt,
    stream::{self, BoxStream},
};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, Resource, ResourceExt,
    core::PartialObjectMeta,
    runtime::{WatchStreamExt, watcher, watcher::Event},
};
use serde::de::DeserializeOwned;

use super::content::is_of_components;
use crate::{
    api::{self, Plugin},
    errors::{chain, is_expired},
    object::Incoming,
    source::folder::{FileVersion, Folder},
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
    /// Files of the directory came, changed or went.
    Files(BTreeSet<String>),
    /// Time has passed.
    Tick,
}

/// The changes of all `Plugin`s, of the ConfigMaps in a namespace, and of the files in a folder.
pub fn changes(client: &Client, namespace: &str, folder: Option<Folder>) -> BoxStream<'static, Change> {
    let plugins = watch(api::plugins(client.clone()));
    let maps = watch(Api::<PartialObjectMeta<ConfigMap>>::namespaced(client.clone(), namespace));
    let ticks = stream::unfold((), |()| async {
        tokio::time::sleep(PERIOD).await;
        Some((Change::Tick, ()))
    });
    let files = match folder {
        Some(folder) => file_changes(folder).boxed(),
        None => stream::pending().boxed(),
    };
    let all: [BoxStream<'static, Change>; 4] =
        [plugin_changes(plugins).boxed(), map_changes(maps).boxed(), files, ticks.boxed()];
    stream::select_all(all).boxed()
}

/// Watches objects for ever, with a list at the beginning of each watch.
fn watch<K>(api: Api<K>) -> impl Stream<Item = watcher::Result<Event<K>>> + Send
where
    K: Resource + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let begin = move || watcher(api.clone(), watcher::Config::default()).default_backoff();
    stream::repeat_with(begin).flat_map(until_expired)
}

/// A watch up to the error that its resource version has expired. After a refusal (HTTP 410), kube's watcher would request the same version for
/// ever, so that another watcher has to begin.
fn until_expired<K: Send>(
    events: impl Stream<Item = watcher::Result<Event<K>>> + Send,
) -> impl Stream<Item = watcher::Result<Event<K>>> + Send {
    events.scan(false, |has_expired, event| {
        let next = (!*has_expired).then_some(event);
        *has_expired = next.as_ref().is_some_and(|event| event.as_ref().is_err_and(is_expired));
        std::future::ready(next)
    })
}

/// The changes of `Plugin`s. A failing watch is told once and goes on by itself.
fn plugin_changes(
    events: impl Stream<Item = watcher::Result<Event<Incoming>>> + Send + 'static,
) -> impl Stream<Item = Change> + Send {
    let (mut listed, mut is_told) = (Vec::new(), false);
    events.filter_map(move |event| {
        if let Some(error) = event.as_ref().err().filter(|error| !is_told && !is_expired(error)) {
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

/// The files of a folder, as far as their versions are known.
type Files = BTreeMap<String, Option<FileVersion>>;

/// The changes of files with components and signatures since now.
fn file_changes(folder: Folder) -> impl Stream<Item = Change> + Send {
    let before = files(&folder).unwrap_or_default();
    stream::unfold((folder, before), async |(folder, mut before)| {
        loop {
            let mut changed = folder.changed().await;
            changed.retain(|name| is_of_components(name));
            if let Some(now) = files(&folder) {
                changed.extend(differing(&before, &now));
                before = now;
            }
            if !changed.is_empty() {
                return Some((Change::Files(changed), (folder, before)));
            }
        }
    })
}

/// None if the folder cannot be read.
fn files(folder: &Folder) -> Option<Files> {
    let directory = folder.path().display();
    let told = |error: &std::io::Error| tracing::warn!(%directory, "failed to read the directory of files: {error}");
    let found = folder.files(is_of_components).inspect_err(told).ok()?;
    let name = |path: &Path| Some(path.file_name()?.to_string_lossy().into_owned());
    Some(found.into_iter().filter_map(|(path, version)| Some((name(&path)?, version.ok()))).collect())
}

/// The names under which there is something else than before.
fn differing(before: &Files, now: &Files) -> BTreeSet<String> {
    let names = before.keys().chain(now.keys());
    names.filter(|name| before.get(*name) != now.get(*name)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use kube::core::Status;

    use super::*;

    #[test]
    fn a_watch_ends_with_the_error_that_it_has_expired() {
        let failed = |code| {
            let status = Status { code, ..Status::default() };
            Err(watcher::Error::WatchStartFailed(kube::Error::Api(status.into())))
        };
        let events: Vec<watcher::Result<Event<ConfigMap>>> =
            vec![Ok(Event::Init), failed(500), Ok(Event::InitDone), failed(410), failed(410)];
        let passed = until_expired(stream::iter(events)).map(|event| event.is_ok()).collect::<Vec<_>>();
        assert_eq!(passed.now_or_never(), Some(vec![true, false, true, false]));
    }
}
