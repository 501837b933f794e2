//! What must be true when nothing changes any more: every object has the children that its plugin wants, and says so.

use pilothouse_controller::{
    labels,
    pipeline::conditions::{RECONCILING, STALLED},
};
use serde_json::Value;

use super::{
    Property, Violation,
    reconciled::{controller, is_reconciled},
    snapshot::{Snapshot, is_child, ready},
    subset::missing,
};
use crate::plugin::{
    decide::{self, Inputs, body, is_stuck, says_children, waits},
    manifest::PLUGIN,
    scope::Scope,
    spec::{ChildSpec, Spec},
    version::Version,
};

/// The first thing that is not as it must be at rest.
pub fn problem(snapshot: &Snapshot, version: Version) -> Option<Violation> {
    let found = snapshot.objects.iter().find_map(|object| {
        let what = of_object(snapshot, &object.value, version)?;
        Some((Property::ComesToRest, format!("object {}: {what}", object.name())))
    });
    let found = found.or_else(|| Some((Property::ComesToRest, super::app::problem(snapshot)?)));
    found.or_else(|| left_behind(snapshot)).map(|(property, what)| Violation { property, what })
}

/// An object that is being deleted and is held for the order of its children alone, so that it must go also while its plugin is removed.
pub fn left_in_order(snapshot: &Snapshot) -> Option<Violation> {
    let is_held = |object: &Value| {
        let finalizers = object["metadata"]["finalizers"].as_array().map(Vec::as_slice).unwrap_or_default();
        !object["metadata"]["deletionTimestamp"].is_null() && finalizers == [Value::from(labels::ORDERED_DELETION)]
    };
    let object = snapshot.objects.iter().find(|object| is_held(&object.value))?;
    let what = format!("the object {} is still there, and only the order of its children holds it", object.name());
    Some(Violation { property: Property::LeavesNothing, what })
}

/// What is wrong with an object and its children.
fn of_object(snapshot: &Snapshot, object: &Value, version: Version) -> Option<String> {
    if !object["metadata"]["deletionTimestamp"].is_null() {
        return Some("it is being deleted and not gone".to_owned());
    }
    let finalizers = object["metadata"]["finalizers"].as_array();
    let has_finalizer = finalizers.is_some_and(|list| list.contains(&labels::finalizer(PLUGIN).into()));
    if version == Version::Finalizing && !has_finalizer {
        return Some("it has no finalizer".to_owned());
    }
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    let all: Vec<_> = snapshot.marked_with(uid).collect();
    let followed = snapshot.followed(object);
    let inputs = Inputs { version, object, children: &all, followed: followed.as_deref() };
    let spec = Spec::of(object);
    let (wanted, says_children) = (version.wanted(&spec), says_children(&spec, inputs.followed));
    let is_ordered = says_children && version.orders() && wanted.len() > 1;
    if is_ordered && !finalizers.is_some_and(|list| list.contains(&labels::ORDERED_DELETION.into())) {
        return Some("its children are in an order, and it has no finalizer for them".to_owned());
    }
    if says_children && let Some(problem) = of_children(snapshot, &wanted, inputs) {
        return Some(problem);
    }
    let status = &object["status"];
    if status["observedGeneration"] != object["metadata"]["generation"] {
        let (observed, generation) = (&status["observedGeneration"], &object["metadata"]["generation"]);
        return Some(format!("its status is about generation {observed} and not {generation}"));
    }
    let told = says_children.then(|| decide::status(&wanted, inputs.followed));
    if let Some(place) = told.and_then(|told| missing(&told, status)) {
        return Some(format!("its status is not what the plugin says: {place}"));
    }
    // Where the plugin leaves it to the host, `Ready` speaks of how far the children are as well.
    let is_stuck = version.leaves_ready() && wanted.iter().any(|child| is_stuck(child, inputs));
    let is_done = says_children && !waits(&spec, &wanted, inputs) && !is_stuck;
    let (ready, expected) = (ready(object), if is_done { "True" } else { "False" });
    if ready["status"] != expected {
        let (status, reason, message) = (&ready["status"], &ready["reason"], &ready["message"]);
        return Some(format!("its condition Ready is {status} and not {expected}: {reason}: {message}"));
    }
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let unfinished = conditions.filter_map(|condition| condition["type"].as_str()).find(|kind| is_unfinished(kind));
    unfinished.filter(|_| expected == "True").map(|kind| format!("it is ready and has the condition {kind}"))
}

/// Whether a condition says, whatever its status, that an object is not ready (kstatus).
fn is_unfinished(kind: &str) -> bool {
    [RECONCILING, STALLED].contains(&kind)
}

/// What is wrong with the children of an object whose plugin says which there shall be.
fn of_children(snapshot: &Snapshot, wanted: &[&ChildSpec], inputs: Inputs<'_>) -> Option<String> {
    let object = inputs.object;
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    let held_up = |place: usize| is_blocked(wanted, place, inputs);
    let judged = wanted.iter().enumerate().filter(|(place, _)| !held_up(*place));
    let wrong = judged.map(|(_, child)| child).find_map(|child| {
        let problem = of_child(snapshot, child, inputs).or_else(|| not_marked(snapshot, child, object))?;
        Some(format!("its child {} {problem}", in_words(object, child)))
    });
    let is_wanted = |live: &Value| wanted.iter().any(|child| is_child(object, child, live));
    wrong.or_else(|| {
        // What is not wanted goes after all others are written.
        let is_clear = !(0..wanted.len()).any(held_up);
        let surplus = snapshot.controlled_by(uid).find(|child| is_clear && !is_wanted(child))?;
        Some(format!("{}/{} is not wanted", surplus["kind"], surplus["metadata"]["name"]))
    })
}

/// Whether a child of those that there shall be waits for a Job that never completes. It need not be as it shall be.
fn is_blocked(wanted: &[&ChildSpec], place: usize, inputs: Inputs<'_>) -> bool {
    let awaited = |place: &usize| inputs.version.awaited(wanted.get(*place)?, *place);
    std::iter::successors(awaited(&place), awaited)
        .any(|place| wanted.get(place).is_some_and(|child| is_stuck(child, inputs)))
}

/// Whether any child of an object waits for a Job that never completes.
pub(super) fn is_held_up(snapshot: &Snapshot, object: &Value, version: Version) -> bool {
    let children: Vec<_> = snapshot.marked_with(object["metadata"]["uid"].as_str().unwrap_or_default()).collect();
    let (spec, followed) = (Spec::of(object), snapshot.followed(object));
    let inputs = Inputs { version, object, children: &children, followed: followed.as_deref() };
    let wanted = version.wanted(&spec);
    (0..wanted.len()).any(|place| is_blocked(&wanted, place, inputs))
}

/// What is wrong with a child that there shall be.
pub(super) fn of_child(snapshot: &Snapshot, child: &ChildSpec, inputs: Inputs<'_>) -> Option<String> {
    let Some(found) = snapshot.child(inputs.object, child) else { return Some("is missing".to_owned()) };
    if !found["metadata"]["deletionTimestamp"].is_null() {
        return Some("is being deleted".to_owned());
    }
    missing(&body(child, inputs), found).map(|place| format!("is not as it shall be: {place}"))
}

fn not_marked(snapshot: &Snapshot, child: &ChildSpec, object: &Value) -> Option<String> {
    let found = snapshot.child(object, child)?;
    let uid = &object["metadata"]["uid"];
    let owner = controller(found).map_or(&found["metadata"]["labels"][labels::OWNER_UID], |owner| &owner["uid"]);
    let is_marked = owner == uid
        && controller(found).is_some() != child.keep
        && !found["metadata"]["labels"][labels::PLUGIN].is_null();
    (!is_marked).then(|| "is not marked as its own".to_owned())
}

/// `ConfigMap home/red-a`.
pub(super) fn in_words(object: &Value, child: &ChildSpec) -> String {
    let namespace = child.namespace(Scope::of(object));
    format!("{} {namespace}/{}", child.kind.as_str(), child.full_name(object))
}

/// A child whose owner does not exist.
fn left_behind(snapshot: &Snapshot) -> Option<(Property, String)> {
    let exists = |uid: &Value| snapshot.reconciled().any(|object| object.uid() == *uid);
    let is_left =
        |child: &&Value| controller(child).is_some_and(|owner| is_reconciled(&owner["kind"]) && !exists(&owner["uid"]));
    let child = snapshot.values().find(is_left)?;
    let what = format!("{}/{} is still there although its owner is gone", child["kind"], child["metadata"]["name"]);
    Some((Property::LeavesNothing, what))
}
