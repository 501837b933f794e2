//! What the cluster has about one object: itself, its plugin, its children and its Events. Reads only.

use anyhow::{Context, bail};
use k8s_openapi::api::core::v1::Event;
use kube::{
    Api, Client, ResourceExt,
    api::{ApiResource, DynamicObject, ListParams},
    core::GroupVersionKind,
    discovery::{self, Scope},
};
use pilothouse_controller::{
    api::{KindName, Plugin, list_plugins},
    errors::chain,
    labels,
    object::{Incoming, Object},
    source::plugin_objects::{AnsweringVersion, answering},
};
use pilothouse_engine::contract::KindRef;
use serde_json::Value;

use crate::named::Named;

/// What the cluster has about an object.
pub struct ClusterState {
    /// Its kind.
    pub kind: KindRef,
    /// The object.
    pub object: Value,
    /// The `Plugin` that reconciles its kind; none if none of the `Plugin`s does.
    pub plugin: Option<Plugin>,
    /// The version of the plugin that answers it; none if no `Plugin` says which.
    pub answering: Option<AnsweringVersion>,
    /// The `Plugin`s that decorate objects of its kind.
    pub decorators: Vec<Plugin>,
    /// Its children, those of decorators among them.
    pub children: Vec<Child>,
    /// The kinds of children that could not be listed, and why.
    pub unknown: Vec<(KindName, String)>,
    /// Its Events, the oldest first.
    pub events: Vec<Event>,
}

/// A child.
pub struct Child {
    /// Its kind.
    pub kind: KindRef,
    /// The child, as the host's caches would hold it.
    pub object: Object,
}

impl Child {
    /// The decorator whose child it is; none if it is the child of the plugin that owns the object.
    pub fn decorator(&self) -> Option<&str> {
        self.object.labels.get(labels::DECORATOR)
    }
}

impl ClusterState {
    /// Reads it.
    ///
    /// # Errors
    /// If there is no such kind or object, or the cluster does not answer.
    pub async fn read(client: &Client, named: &Named, namespace: &str) -> anyhow::Result<Self> {
        let (resource, scope) = named.find_kind(client).await?;
        let api = match scope {
            Scope::Namespaced => Api::<DynamicObject>::namespaced_with(client.clone(), namespace, &resource),
            Scope::Cluster => Api::all_with(client.clone(), &resource),
        };
        let place = if scope == Scope::Namespaced { format!(" in namespace '{namespace}'") } else { String::new() };
        let found = api.get_opt(&named.name).await.context("failed to read the object")?;
        let Some(object) = found else { bail!("there is no {} '{}'{place}", resource.kind, named.name) };
        let kind = KindRef::new(resource.api_version.clone(), resource.kind.clone());
        let (decorators, owners): (Vec<_>, Vec<_>) =
            plugins_of(client, &kind).await.into_iter().partition(is_decorator);
        let plugin = owners.into_iter().next();
        let answering = match &plugin {
            Some(plugin) => answering(plugin, &as_cached(&object, &resource)?),
            None => None,
        };
        let (mut children, mut unknown) = (Vec::new(), Vec::new());
        for child_kind in child_kinds(plugin.iter().chain(&decorators)) {
            match children_of(client, &object, child_kind).await {
                Ok(found) => children.extend(found),
                Err(why) => unknown.push((child_kind.clone(), chain(why.as_ref()))),
            }
        }
        let events = events_of(client, &object).await?;
        let object = serde_json::to_value(object)?;
        Ok(Self { kind, object, plugin, answering, decorators, children, unknown, events })
    }
}

/// The `Plugin`s that reconcile or decorate a kind. A cluster without `Plugin`s, or whose `Plugin`s the user may not see, has none.
async fn plugins_of(client: &Client, kind: &KindRef) -> Vec<Plugin> {
    let mut plugins = list_plugins(client.clone()).await.unwrap_or_default();
    plugins.retain(|plugin| {
        let reconciles = plugin.status.as_ref().and_then(|status| status.reconciles.as_ref());
        reconciles.is_some_and(|it| it.kind_ref().is_same_kind(kind))
    });
    plugins
}

fn is_decorator(plugin: &Plugin) -> bool {
    plugin.status.as_ref().is_some_and(|status| status.decorates)
}

/// The kinds of children that plugins may have, each once: several of them may have children of one kind.
fn child_kinds<'p>(plugins: impl Iterator<Item = &'p Plugin>) -> Vec<&'p KindName> {
    let mut kinds: Vec<&KindName> = Vec::new();
    for kind in plugins.flat_map(|plugin| plugin.status.iter()).flat_map(|status| &status.children) {
        if !kinds.iter().any(|known| known.kind_ref().is_same_kind(&kind.kind_ref())) {
            kinds.push(kind);
        }
    }
    kinds
}

async fn children_of(client: &Client, object: &DynamicObject, kind: &KindName) -> anyhow::Result<Vec<Child>> {
    let (group, version) = kind.api_version.split_once('/').unwrap_or(("", &kind.api_version));
    let found = discovery::pinned_kind(client, &GroupVersionKind::gvk(group, version, &kind.kind)).await?;
    let (resource, capabilities) = found;
    let api = match object.namespace().filter(|_| capabilities.scope == Scope::Namespaced) {
        Some(namespace) => Api::<DynamicObject>::namespaced_with(client.clone(), &namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let uid = object.uid().unwrap_or_default();
    let found = api.list(&ListParams::default().labels(&format!("{}={uid}", labels::OWNER_UID))).await?;
    let child = |child: DynamicObject| Ok(Child { kind: kind.kind_ref(), object: as_cached(&child, &resource)? });
    found.items.into_iter().map(child).collect()
}

/// An object as the host's caches would hold it.
fn as_cached(object: &DynamicObject, resource: &ApiResource) -> anyhow::Result<Object> {
    let incoming: Incoming = serde_json::from_str(&serde_json::to_string(object)?)?;
    Ok(incoming.into_object(resource))
}

async fn events_of(client: &Client, object: &DynamicObject) -> anyhow::Result<Vec<Event>> {
    let of_object = format!("involvedObject.uid={}", object.uid().unwrap_or_default());
    let namespace = object.namespace().unwrap_or_else(|| "default".to_owned());
    let found =
        Api::<Event>::namespaced(client.clone(), &namespace).list(&ListParams::default().fields(&of_object)).await;
    let mut events = found.context("failed to list the Events")?.items;
    events.sort_by_key(|event| event.last_timestamp.clone().map(|at| at.0));
    Ok(events)
}
