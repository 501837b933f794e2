//! What the host and the controllers of Kubernetes would make of an answer, as the caches would show it afterwards. Pure: nothing is
//! carried out.
//!
//! # Caveats
//!
//! Children that are written get ready as if all went well. Those that are not keep the status that they have, whatever it says.

use std::sync::Arc;

use jiff::Timestamp;
use pilothouse_controller::{
    object::{Object, ObjectRef},
    pipeline::{
        apply::decoration_of,
        check::Decoration,
        observe::{LiveChild, Observed},
        plan::{DeleteCause, Write, diff::Difference},
    },
    plugin::ActivePlugin,
    schema::pointer_keys,
};
use pilothouse_engine::contract::KindRef;
use pilothouse_offline::{Answer, Round, cached, controllers};
use serde_json::{Value, json};

use crate::merge::merge;

/// What there would be after a round; none if nothing would be another than before.
pub(crate) fn carried_out(plugin: &ActivePlugin, round: &Round, answer: &Answer, now: Timestamp) -> Option<Observed> {
    let mut next = round.observed.clone();
    let mut is_changed = false;
    if answer.held_back().is_none() {
        for delete in &answer.plan.deletes {
            // What is created anew is created with the next answer.
            let is_gone = |child: &LiveChild| child.kind == delete.kind && child.object.name == delete.live.name;
            next.children.retain(|child| !is_gone(child));
            next.former.retain(|child| !is_gone(child));
            is_changed |= delete.cause != DeleteCause::OwnerDeleted;
        }
    }
    for write in &answer.plan.writes {
        let written = written(write, &next, now)?;
        let projection = plugin.projections.of_child(&write.child.kind, &written);
        let child = LiveChild { kind: write.child.kind.clone(), object: Arc::new(written), projection };
        let place = next.children.iter_mut().find(|there| is_child(there, &child.kind, &child.object.name));
        match place {
            Some(there) => *there = child,
            None => next.children.push(child),
        }
        is_changed = true;
    }
    next.children.sort_by(|one, other| (&one.kind, &one.object.name).cmp(&(&other.kind, &other.object.name)));
    let object = match &answer.desired.decoration {
        Some(wanted) => {
            let decorated = with_decoration(plugin, &round.observed.object, wanted)?;
            is_changed |= decorated.text != round.observed.object.text;
            decorated
        }
        None => {
            let object = with_status(round, now)?;
            let status = |object: &Object| controllers::without_times(&Value::Object(object.status()));
            is_changed |= status(&object) != status(&round.observed.object);
            object
        }
    };
    next.projection = plugin.projections.of_object(&object);
    next.object = Arc::new(object);
    is_changed.then_some(next)
}

/// A child after a write, when its controller has done its work. None if that is no object.
fn written(write: &Write, observed: &Observed, now: Timestamp) -> Option<Object> {
    let kind = &write.child.kind;
    let mut child = match write.cause.live() {
        Some(live) => {
            let mut child = serde_json::from_str(&live.text.read()).ok()?;
            merge(&mut child, &write.child.body, observed.schema_of(kind));
            controllers::raise_generation(&mut child);
            child
        }
        None => {
            let mut child = write.child.body.clone();
            controllers::created(&mut child, observed.children.len() + 1, now);
            child
        }
    };
    if let Some(status) = controllers::status(kind, &child, now) {
        child["status"] = status;
    }
    cached(&child).ok()
}

/// The object with the status that the host would write.
fn with_status(round: &Round, now: Timestamp) -> Option<Object> {
    let observed = &round.observed;
    let mut text: Value = serde_json::from_str(&observed.object.text.read()).ok()?;
    text["status"] = Value::Object(round.reported_status(now));
    cached(&text).ok()
}

/// The object with the labels and annotations that its decorator wants. Its status is not a decorator's.
fn with_decoration(plugin: &ActivePlugin, object: &Object, wanted: &Decoration) -> Option<Object> {
    let differences = decoration_of(plugin, object, wanted).ok().filter(|differences| !differences.is_empty());
    let Some(differences) = differences else { return Some(object.clone()) };
    let mut text: Value = serde_json::from_str(&object.text.read()).ok()?;
    for Difference { path, desired, .. } in differences {
        let mut names = pointer_keys(&path);
        let (field, key) = (names.nth(1)?, names.next()?);
        let metadata = text.get_mut("metadata")?.as_object_mut()?;
        let entries = metadata.entry(field).or_insert_with(|| json!({})).as_object_mut()?;
        match desired {
            Value::Null => entries.remove(&key),
            desired => entries.insert(key, desired),
        };
    }
    cached(&text).ok()
}

fn is_child(child: &LiveChild, kind: &KindRef, name: &ObjectRef) -> bool {
    child.kind == *kind && child.object.name == *name
}
