//! What must be true when nothing changes any more: every object has the children that its plugin wants, and says so.

use std::sync::Arc;

use pilothouse_controller::labels;
use pilothouse_engine::contract::Verdict;
use serde_json::Value;

use super::{Property, Violation, subset::missing};
use crate::{
    api_server::Object,
    cluster::Cluster,
    kinds,
    plugin::{
        decide::{Inputs, body, decide, name_of, spec_of},
        spec::ChildKind,
        version::{KIND, Version},
    },
};
/// Everything that is there, as far as the properties ask.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The objects that the plugin reconciles.
    pub objects: Vec<Arc<Object>>,
    /// Everything of the kinds of children.
    pub children: Vec<Arc<Object>>,
}

impl Snapshot {
    /// What is there now.
    pub fn of(cluster: &Cluster) -> Self {
        let children = ChildKind::ALL.into_iter().flat_map(|kind| cluster.objects(kind.resource()));
        let children = children.collect();
        Self { objects: cluster.objects(kinds::SIMULATEDS), children }
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
    fn marked_with<'a>(&'a self, uid: &'a str) -> impl Iterator<Item = &'a Value> {
        self.values().filter(move |child| child["metadata"]["labels"][labels::OWNER_UID] == uid)
    }

    fn values(&self) -> impl Iterator<Item = &Value> {
        self.children.iter().map(|child| &child.value)
    }

    /// Something of a kind of children, by its name.
    pub fn child(&self, kind: ChildKind, name: &str) -> Option<&Value> {
        self.values().find(|child| child["kind"] == kind.as_str() && child["metadata"]["name"] == name)
    }

    /// The value of the ConfigMap that an object follows; none if there is none.
    pub fn followed(&self, object: &Value) -> Option<String> {
        let name = spec_of(object).follows?;
        let found = self.child(ChildKind::ConfigMap, &name)?;
        Some(found.pointer("/data/value").and_then(Value::as_str).unwrap_or_default().to_owned())
    }
}

/// The owner that controls a child.
pub fn controller(child: &Value) -> Option<&Value> {
    let owners = child.pointer("/metadata/ownerReferences").and_then(Value::as_array).into_iter().flatten();
    owners.into_iter().find(|owner| owner["controller"] == true)
}

/// The first thing that is not as it must be at rest.
pub fn problem(snapshot: &Snapshot, version: Version) -> Option<Violation> {
    let found = snapshot.objects.iter().find_map(|object| of_object(snapshot, &object.value, version));
    found.or_else(|| left_behind(snapshot)).map(|(property, what)| Violation { property, what })
}

fn of_object(snapshot: &Snapshot, object: &Value, version: Version) -> Option<(Property, String)> {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let rest = |what: String| Some((Property::ComesToRest, format!("object {name}: {what}")));
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return rest("it is being deleted and not gone".to_owned());
    }
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    let live: Vec<_> = snapshot.controlled_by(uid).collect();
    let all: Vec<_> = snapshot.marked_with(uid).collect();
    let followed = snapshot.followed(object);
    let inputs = Inputs { version, object, children: &all, followed: followed.as_deref() };
    let answer = decide(inputs);
    if answer.children.is_some() {
        let spec = spec_of(object);
        let wanted: Vec<_> = spec.children.iter().filter(|child| version.declares(child.kind)).collect();
        for child in &wanted {
            let (kind, name) = (child.kind.as_str(), name_of(object, child));
            let Some(found) = snapshot.child(child.kind, &name) else {
                return rest(format!("its child {kind}/{name} is missing"));
            };
            if !found["metadata"]["deletionTimestamp"].is_null() {
                return rest(format!("its child {kind}/{name} is being deleted"));
            }
            if let Some(place) = missing(&body(child, inputs), found) {
                return rest(format!("its child {kind}/{name} is not as it shall be: {place}"));
            }
            let owner =
                controller(found).map_or(&found["metadata"]["labels"]["pilothouse.dev/owner-uid"], |it| &it["uid"]);
            if owner != uid
                || controller(found).is_some() == child.keep
                || found["metadata"]["labels"][labels::PLUGIN].is_null()
            {
                return rest(format!("its child {kind}/{name} is not marked as its own"));
            }
        }
        let is_wanted = |child: &Value| {
            wanted.iter().any(|wanted| {
                child["kind"] == wanted.kind.as_str() && child["metadata"]["name"] == *name_of(object, wanted)
            })
        };
        if let Some(surplus) = live.iter().find(|child| !is_wanted(child)) {
            return rest(format!("{}/{} is not wanted", surplus["kind"], surplus["metadata"]["name"]));
        }
    }
    let status = &object["status"];
    if status["observedGeneration"] != object["metadata"]["generation"] {
        let (observed, generation) = (&status["observedGeneration"], &object["metadata"]["generation"]);
        return rest(format!("its status is about generation {observed} and not {generation}"));
    }
    let told = answer.status.as_deref().and_then(|status| serde_json::from_str::<Value>(status).ok());
    if let Some(place) = told.and_then(|told| missing(&told, status)) {
        return rest(format!("its status is not what the plugin says: {place}"));
    }
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let ready = conditions.into_iter().find(|condition| condition["type"] == "Ready").unwrap_or(&Value::Null);
    let expected = if answer.verdict == Verdict::Done { "True" } else { "False" };
    if ready["status"] != expected {
        let (status, reason, message) = (&ready["status"], &ready["reason"], &ready["message"]);
        return rest(format!("its condition Ready is {status} and not {expected}: {reason}: {message}"));
    }
    None
}

/// A child whose owner does not exist.
fn left_behind(snapshot: &Snapshot) -> Option<(Property, String)> {
    let exists = |uid: &Value| snapshot.objects.iter().any(|object| object.uid() == *uid);
    let is_left =
        |child: &&Value| controller(child).is_some_and(|owner| owner["kind"] == KIND && !exists(&owner["uid"]));
    let child = snapshot.values().find(is_left)?;
    let what = format!("{}/{} is still there although its owner is gone", child["kind"], child["metadata"]["name"]);
    Some((Property::LeavesNothing, what))
}
