//! What must be true of the objects of the plugin `app-service`: at rest, and while they say that they are ready.

use pilothouse_sdk::ConditionStatus;
use serde_json::Value;

use super::{
    reconciled::controller,
    snapshot::{Snapshot, ready},
    subset::missing,
};
use crate::plugin::app;

/// What is not as it must be at rest.
pub(super) fn problem(snapshot: &Snapshot) -> Option<String> {
    snapshot.apps.iter().find_map(|app| Some(format!("app {}: {}", app.name(), of_app(snapshot, &app.value)?)))
}

fn of_app(snapshot: &Snapshot, app: &Value) -> Option<String> {
    if !app["metadata"]["deletionTimestamp"].is_null() {
        return Some("it is being deleted and not gone".to_owned());
    }
    if let Some(problem) = wrong_child(snapshot, app) {
        return Some(problem);
    }
    let (status, generation) = (&app["status"], &app["metadata"]["generation"]);
    if status["observedGeneration"] != *generation {
        return Some(format!("its status is about generation {} and not {generation}", status["observedGeneration"]));
    }
    let told: Value =
        answer(snapshot, app).status.and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
    if let Some(place) = missing(&told, status) {
        return Some(format!("its status is not what the plugin says: {place}"));
    }
    let ready = ready(app);
    (ready["status"] != "True").then(|| format!("it is not ready: {}: {}", ready["reason"], ready["message"]))
}

/// What is wrong with an object that says that it is ready.
pub(super) fn wrong_although_ready(snapshot: &Snapshot, app: &Value) -> Option<String> {
    let metadata = &app["metadata"];
    let is_ready = ready(app)["status"] == "True"
        && app["status"]["observedGeneration"] == metadata["generation"]
        && metadata["deletionTimestamp"].is_null();
    if !is_ready {
        return None;
    }
    let says_ready = |condition: &pilothouse_sdk::Condition| {
        condition.condition_type == "Ready" && matches!(condition.status, ConditionStatus::IsTrue)
    };
    wrong_child(snapshot, app).or_else(|| {
        let is_unready = !answer(snapshot, app).conditions.iter().any(says_ready);
        is_unready.then(|| "its rollout is not complete".to_owned())
    })
}

fn answer(snapshot: &Snapshot, app: &Value) -> pilothouse_sdk::raw::Response {
    let uid = app["metadata"]["uid"].as_str().unwrap_or_default();
    app::answer(app, &snapshot.controlled_by(uid).collect::<Vec<_>>())
}

/// The first child that is not as it shall be, and what is wrong with it.
fn wrong_child(snapshot: &Snapshot, app: &Value) -> Option<String> {
    let children = answer(snapshot, app).children.unwrap_or_default();
    children.into_iter().find_map(|child| {
        let wanted: Value = serde_json::from_str(&child.object).unwrap_or_default();
        let problem = of_child(snapshot, app, &wanted)?;
        Some(format!("its child {}/{} {problem}", wanted["kind"], wanted["metadata"]["name"]))
    })
}

fn of_child(snapshot: &Snapshot, app: &Value, wanted: &Value) -> Option<String> {
    let is_it = |live: &&Value| {
        let same = |pointer: &str| live.pointer(pointer) == wanted.pointer(pointer);
        same("/kind") && same("/metadata/name") && live["metadata"]["namespace"] == app["metadata"]["namespace"]
    };
    let Some(found) = snapshot.values().find(is_it) else { return Some("is missing".to_owned()) };
    if !found["metadata"]["deletionTimestamp"].is_null() {
        return Some("is being deleted".to_owned());
    }
    if controller(found).is_none_or(|owner| owner["uid"] != app["metadata"]["uid"]) {
        return Some("is not marked as its own".to_owned());
    }
    missing(wanted, found).map(|place| format!("is not as it shall be: {place}"))
}
