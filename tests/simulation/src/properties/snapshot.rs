//! Everything that is there, as far as the properties ask. Judges nothing.

use std::sync::Arc;

use pilothouse_controller::labels;
use serde_json::Value;

use super::reconciled::controller;
use crate::{
    api_server::Object,
    cluster::Cluster,
    kinds,
    plugin::{
        app, decide,
        scope::{Place, Scope},
        spec::{ChildKind, ChildSpec},
    },
};

/// Everything that is there.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The objects that the plugin of the simulation reconciles.
    pub objects: Vec<Arc<Object>>,
    /// Those of the reference plugin.
    pub apps: Vec<Arc<Object>>,
    /// Everything of the kinds of children.
    pub children: Vec<Arc<Object>>,
}

impl Snapshot {
    /// What is there now.
    pub fn of(cluster: &Cluster, scope: Scope) -> Self {
        let children = ChildKind::all(scope).iter().flat_map(|kind| cluster.children(*kind));
        let children = children.collect();
        Self { objects: cluster.objects(kinds::resource(scope)), apps: cluster.objects(app::RESOURCE), children }
    }

    /// The objects of all plugins.
    pub fn reconciled(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.objects.iter().chain(&self.apps)
    }

    /// The children that an object controls.
    ///
    /// One from which somebody took the label of the plugin, while it was not wanted, is nobody's any more until its owner goes: hosts
    /// watch what has the label.
    pub fn controlled_by<'a>(&'a self, uid: &'a str) -> impl Iterator<Item = &'a Value> {
        let is_of = move |child: &&Value| controller(child).is_some_and(|owner| owner["uid"] == uid);
        self.values().filter(is_of).filter(|child| !child["metadata"]["labels"][labels::PLUGIN].is_null())
    }

    /// The children of an object, those that stay without an owner included.
    pub fn marked_with<'a>(&'a self, uid: &'a str) -> impl Iterator<Item = &'a Value> {
        self.values().filter(move |child| child["metadata"]["labels"][labels::OWNER_UID] == uid)
    }

    /// All children and what else is of their kinds.
    pub fn values(&self) -> impl Iterator<Item = &Value> {
        self.children.iter().map(|child| &child.value)
    }

    /// What has the kind, namespace and name of a child.
    pub fn child(&self, object: &Value, child: &ChildSpec) -> Option<&Value> {
        self.values().find(|live| is_child(object, child, live))
    }

    /// The value of the ConfigMap that an object follows; none if there is none.
    pub fn followed(&self, object: &Value) -> Option<String> {
        let (_, name) = decide::followed(object)?;
        let is_it = |live: &&Value| {
            let metadata = &live["metadata"];
            live["kind"] == "ConfigMap" && metadata["name"] == *name && metadata["namespace"] == Place::Home.namespace()
        };
        self.values().find(is_it).map(|found| decide::value_of(found).to_owned())
    }
}

/// Whether something has the kind, namespace and name of a child.
pub fn is_child(object: &Value, child: &ChildSpec, live: &Value) -> bool {
    let metadata = &live["metadata"];
    live["kind"] == child.kind.as_str()
        && metadata["name"].as_str().is_some_and(|name| child.is_named(object, name))
        && metadata["namespace"].as_str().unwrap_or_default() == child.namespace(Scope::of(object))
}

/// The condition `Ready` of an object; null if it has none.
pub fn ready(object: &Value) -> &Value {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().find(|condition| condition["type"] == "Ready").unwrap_or(&Value::Null)
}
