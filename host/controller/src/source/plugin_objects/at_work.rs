//! The version of a `Plugin` that is at work, as its status tells it.

use std::sync::Arc;

use jiff::Timestamp;
use pilothouse_engine::contract::KindRef;
use serde_json::Value;

use super::status::AtWork;
use crate::{
    api::{KindName, ObjectCounts},
    cache::WatchState,
    object::Object,
    pipeline::{
        conditions::{READY, STALLED},
        lifecycle::finalizer,
    },
    plugin::ActivePlugin,
    readiness::is_true,
};

/// What is told of a version at work.
pub fn at_work(active: &ActivePlugin) -> AtWork {
    let manifest = active.manifest();
    let obstacles = active.required().filter_map(|informer| match informer.state() {
        WatchState::Synced => None,
        WatchState::NotInstalled => Some(format!("{} is not installed", informer.kind())),
        WatchState::Starting => Some(format!("the cache of {} is not filled yet", informer.kind())),
        WatchState::Failing(failure) => Some(failure.why),
    });
    AtWork {
        version: manifest.version.clone(),
        digest: active.reconciler.digest().to_owned(),
        contract: manifest.contract.clone(),
        reconciles: kind_name(&manifest.reconciles),
        decorates: manifest.decorates.is_some(),
        children: manifest.children.iter().map(kind_name).collect(),
        child_readiness: manifest.child_readiness.iter().map(Into::into).collect(),
        finalizers: finalizer::all_of(manifest),
        objects: match manifest.decorates {
            // Their conditions say how others are.
            Some(_) => ObjectCounts { total: active.answered(), ..ObjectCounts::default() },
            None => counts(&active.objects.store().select(None, |_| true)),
        },
        obstacles: obstacles.collect(),
    }
}

fn kind_name(kind: &KindRef) -> KindName {
    KindName { api_version: kind.api_version.clone(), kind: kind.kind.clone() }
}

/// How many of these objects began to fail at this time or later, a time as the API has it. Within one second nobody knows which came first.
pub fn failing_since(objects: &[Arc<Object>], since: &str) -> usize {
    let Ok(since) = since.parse::<Timestamp>() else { return 0 };
    let began = |object: &Object| transition(object, STALLED, "True");
    objects.iter().filter(|object| began(object).is_some_and(|began| began >= since)).count()
}

/// How these objects are, of which all counts as well that was not so before this time.
pub fn as_before(objects: &[Arc<Object>], time: &str) -> ObjectCounts {
    let Ok(time) = time.parse::<Timestamp>() else { return ObjectCounts::default() };
    let was_so = |object: &Object, kind, status| transition(object, kind, status).is_some_and(|since| since < time);
    let number = |kind, status| objects.iter().filter(|object| was_so(object, kind, status)).count();
    let (total, unready) = (objects.len(), number(READY, "False"));
    ObjectCounts { total, ready: total.saturating_sub(unready), failing: number(STALLED, "True") }
}

/// Since when a condition of an object has this status; none if it has another one.
fn transition(object: &Object, kind: &str, status: &str) -> Option<Timestamp> {
    let object = object.status();
    let conditions = object.get("conditions").and_then(Value::as_array)?;
    let condition = conditions.iter().find(|it| it["type"] == kind && it["status"] == status)?;
    condition["lastTransitionTime"].as_str()?.parse().ok()
}

/// How many of these objects there are, and how they are.
pub fn counts(objects: &[Arc<Object>]) -> ObjectCounts {
    let mut counts = ObjectCounts { total: objects.len(), ..ObjectCounts::default() };
    for object in objects {
        let status = Value::Object(object.status());
        counts.ready += usize::from(is_true(&status, READY));
        counts.failing += usize::from(is_true(&status, STALLED));
    }
    counts
}
