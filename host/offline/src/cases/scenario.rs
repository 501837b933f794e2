//! A cluster of one object and its children, for the steps of a case: writes what the host would write, and then what controllers would.
//! Keeps what others wrote in fields that a plugin leaves to them.

use std::collections::BTreeMap;

use pilothouse_controller::{
    pipeline::{check::Decoration, plan::Plan},
    schema::pointer_keys,
};
use pilothouse_engine::contract::KindRef;
use serde_json::{Map, Value, json};

use super::file::Changes;
use crate::{Inputs, Round, controllers, kind_of};

/// A step is about a child that is not there.
#[derive(Debug, thiserror::Error)]
#[error("there is no live child '{name}'; {}", there_are(.there))]
pub(super) struct NoSuchChild {
    name: String,
    /// The `KIND/NAME` of those that are there.
    there: Vec<String>,
}

fn there_are(children: &[String]) -> String {
    if children.is_empty() { "there are none".to_owned() } else { format!("there are {}", children.join(", ")) }
}

/// The cluster.
pub(super) struct Cluster {
    /// What the plugin is called with next.
    pub(super) inputs: Inputs,
    /// The status that a step gives a child, by `KIND/NAME`: its controller leaves it alone in that step.
    by_hand: Vec<String>,
    without_controllers: bool,
    created: usize,
    /// What a decorator has set on the object.
    decoration: Decoration,
}

impl Cluster {
    /// A cluster with what a case begins with.
    pub(super) fn new(inputs: Inputs) -> Self {
        Self { inputs, by_hand: Vec::new(), without_controllers: false, created: 0, decoration: Decoration::default() }
    }

    /// Carries out what happens at the begin of a step.
    ///
    /// # Errors
    /// [`NoSuchChild`].
    pub(super) fn change(&mut self, changes: &Changes) -> Result<(), NoSuchChild> {
        if let Some(patch) = &changes.patch {
            let before = self.inputs.object.get("spec").cloned();
            json_patch::merge(&mut self.inputs.object, patch);
            if self.inputs.object.get("spec") != before.as_ref() {
                controllers::raise_generation(&mut self.inputs.object);
            }
        }
        for name in &changes.delete {
            self.existing(name)?;
            self.inputs.children.retain(|child| short_name(child) != *name);
        }
        for (name, patch) in &changes.live {
            let place = self.existing(name)?;
            json_patch::merge(&mut self.inputs.children[place], patch);
        }
        self.by_hand = changes.live.keys().cloned().collect();
        self.without_controllers = changes.without_controllers;
        if let Some(lookups) = &changes.lookups {
            self.inputs.lookups.clone_from(lookups);
        }
        if let Some(config) = &changes.config {
            self.inputs.config.clone_from(config);
        }
        if let Some(now) = changes.now {
            self.inputs.now = now;
        }
        Ok(())
    }

    /// Carries out a round: its plan, the status, and what controllers add. Returns whether anything changed.
    pub(super) fn carry_out(&mut self, round: &Round) -> bool {
        let before = (self.inputs.object.clone(), self.inputs.children.clone());
        if let Ok(answer) = &round.answer {
            self.apply(&answer.plan, answer.held_back().is_some());
            if let Some(wanted) = &answer.desired.decoration {
                self.decorate(wanted);
            }
        }
        let status = round.reported_status(self.inputs.now);
        self.inputs.object["status"] = Value::Object(status);
        if let Some(metadata) = self.inputs.object.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.entry("generation").or_insert_with(|| json!(1));
        }
        self.let_controllers_work();
        before != (self.inputs.object.clone(), self.inputs.children.clone())
    }

    fn apply(&mut self, plan: &Plan, are_deletes_held_back: bool) {
        for write in &plan.writes {
            let mut body = write.child.body.clone();
            let place = self.inputs.children.iter().position(|child| is_same(child, &body));
            match place {
                Some(place) => update(&mut self.inputs.children[place], body, &write.child.unmanaged),
                None => {
                    self.created += 1;
                    controllers::created(&mut body, self.created, self.inputs.now);
                    self.inputs.children.push(body);
                }
            }
        }
        if are_deletes_held_back {
            return;
        }
        for delete in &plan.deletes {
            let (kind, name) = (&delete.kind, &delete.live.name);
            self.inputs.children.retain(|child| {
                let (there, namespace) = (text(child, "/metadata/name"), text(child, "/metadata/namespace"));
                kind_of(child) != *kind
                    || there != &*name.name
                    || !(namespace.is_empty() || *namespace == *name.namespace)
            });
        }
    }

    /// Sets labels and annotations on the object, and takes off those that it set before. What somebody else has set stays.
    fn decorate(&mut self, wanted: &Decoration) {
        let Decoration { labels, annotations } = &mut self.decoration;
        for (field, set, wanted) in
            [("labels", labels, &wanted.labels), ("annotations", annotations, &wanted.annotations)]
        {
            let there = &mut self.inputs.object["metadata"][field];
            let mut entries = there.as_object().cloned().unwrap_or_default();
            entries.retain(|key, _| !set.contains_key(key));
            set.clear();
            for (key, value) in wanted.iter().filter(|(key, _)| !entries.contains_key(*key)) {
                set.insert(key.clone(), value.clone());
            }
            entries.extend(set.iter().map(|(key, value)| (key.clone(), json!(value))));
            if !entries.is_empty() || !there.is_null() {
                *there = Value::Object(entries);
            }
        }
    }

    /// Lets controllers bring the live children where they want them.
    pub(super) fn let_controllers_work(&mut self) {
        if self.without_controllers {
            return;
        }
        for child in &mut self.inputs.children {
            if self.by_hand.contains(&short_name(child)) {
                continue;
            }
            let kind: KindRef = kind_of(child);
            // A controller writes the times of a status once.
            let is_written = |status: &Value| {
                child
                    .get("status")
                    .is_some_and(|there| controllers::without_times(there) == controllers::without_times(status))
            };
            if let Some(status) =
                controllers::status(&kind, child, self.inputs.now).filter(|status| !is_written(status))
            {
                child["status"] = status;
            }
        }
    }

    fn existing(&self, name: &str) -> Result<usize, NoSuchChild> {
        let place = self.inputs.children.iter().position(|child| short_name(child) == name);
        let there = || self.inputs.children.iter().map(short_name).collect();
        place.ok_or_else(|| NoSuchChild { name: name.to_owned(), there: there() })
    }
}

/// An update of a live object: the new body, with the status, what the API server sets, and the fields that are left to others.
fn update(live: &mut Value, mut body: Value, unmanaged: &[String]) {
    let before = std::mem::take(live);
    for field in ["uid", "creationTimestamp", "generation"] {
        if let Some(value) = before["metadata"].get(field) {
            body["metadata"][field] = value.clone();
        }
    }
    for pointer in unmanaged {
        if let Some(value) = before.pointer(pointer) {
            set(&mut body, pointer, value.clone());
        }
    }
    let is_changed = without(&body, "status") != without(&before, "status");
    if let Some(status) = before.get("status") {
        body["status"] = status.clone();
    }
    *live = body;
    if is_changed {
        controllers::raise_generation(live);
    }
}

fn without(object: &Value, field: &str) -> BTreeMap<String, Value> {
    let fields = object.as_object().into_iter().flatten();
    fields
        .filter(|(key, _)| *key != field && *key != "metadata")
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect()
}

/// Sets a field, and makes the maps above it.
fn set(object: &mut Value, pointer: &str, value: Value) {
    let mut place = object;
    for key in pointer_keys(pointer) {
        place = match place {
            Value::Array(elements) => match key.parse::<usize>().ok().and_then(|index| elements.get_mut(index)) {
                Some(element) => element,
                None => return,
            },
            other => {
                if !other.is_object() {
                    *other = Value::Object(Map::new());
                }
                &mut other[key.as_str()]
            }
        };
    }
    *place = value;
}

fn is_same(one: &Value, other: &Value) -> bool {
    let (here, there) = (text(one, "/metadata/namespace"), text(other, "/metadata/namespace"));
    let is_same_namespace = here == there || here.is_empty() || there.is_empty();
    kind_of(one) == kind_of(other) && text(one, "/metadata/name") == text(other, "/metadata/name") && is_same_namespace
}

/// `KIND/NAME`.
fn short_name(object: &Value) -> String {
    format!("{}/{}", text(object, "/kind"), text(object, "/metadata/name"))
}

fn text<'v>(object: &'v Value, pointer: &str) -> &'v str {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}
