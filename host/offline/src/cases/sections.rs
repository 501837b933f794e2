//! A round as plain sections, in the words of case files: verdict, children, status and so on. Sections that say nothing are left out.

use pilothouse_controller::{
    labels,
    pipeline::{check::DesiredChild, conditions::status_word},
};
use pilothouse_engine::contract::{EventType, Handling, ImmutablePolicy, Verdict};
use serde_json::{Map, Value, json};

use crate::{Answer, Round, served::DEFAULT_NAMESPACE};

/// The names of the sections, in the order in which people read them.
pub(super) const SECTIONS: [&str; 11] = [
    "error",
    "verdict",
    "children",
    "options",
    "onObject",
    "status",
    "conditions",
    "events",
    "measurements",
    "requeueAfter",
    "removesMany",
];

/// The section of children or of a status that an answer leaves as they are.
pub(crate) const UNCHANGED: &str = "unchanged";

/// The sections of a round.
pub(crate) fn sections(round: &Round) -> Map<String, Value> {
    let mut sections = Map::new();
    match &round.answer {
        Ok(answer) => add_answer(&mut sections, answer, &round.observed.object.name.namespace),
        Err(error) => {
            sections.insert("error".to_owned(), json!({"reason": error.reason(), "message": error.to_string()}));
        }
    }
    sections
}

fn add_answer(sections: &mut Map<String, Value>, answer: &Answer, namespace: &str) {
    let desired = &answer.desired;
    let mut add = |name: &str, value: Value| sections.insert(name.to_owned(), value);
    add("verdict", verdict(&desired.verdict));
    match &answer.children {
        Some(children) => {
            let mut bodies: Vec<_> = children.iter().collect();
            bodies.sort_by(|one, other| (&one.kind, &one.name).cmp(&(&other.kind, &other.name)));
            add("children", bodies.iter().map(|child| plain(child, namespace)).collect());
            let options: Map<_, _> = bodies.iter().filter_map(|child| options(child, children)).collect();
            if !options.is_empty() {
                add("options", Value::Object(options));
            }
        }
        None => {
            add("children", UNCHANGED.into());
        }
    }
    let decoration = desired.decoration.iter();
    let on_object: Map<_, _> = decoration
        .flat_map(|it| [("labels", &it.labels), ("annotations", &it.annotations)])
        .filter(|(_, entries)| !entries.is_empty())
        .map(|(field, entries)| (field.to_owned(), json!(entries)))
        .collect();
    if !on_object.is_empty() {
        add("onObject", Value::Object(on_object));
    }
    add("status", desired.status.clone().map_or_else(|| UNCHANGED.into(), Value::Object));
    let mut conditions: Vec<_> = desired.conditions.iter().collect();
    conditions.sort_by(|one, other| one.condition_type.cmp(&other.condition_type));
    let conditions: Vec<_> = conditions
        .into_iter()
        .map(|one| {
            json!({
                "type": one.condition_type, "status": status_word(one.status), "reason": one.reason,
                "message": one.message,
            })
        })
        .collect();
    let event_type = |event_type: EventType| match event_type {
        EventType::Normal => "Normal",
        EventType::Warning => "Warning",
    };
    let events: Vec<_> = desired
        .events
        .iter()
        .map(|one| json!({"type": event_type(one.event_type), "reason": one.reason, "message": one.message}))
        .collect();
    let measurements: Vec<_> = desired
        .measurements
        .iter()
        .map(|one| {
            let labels: Map<_, _> = one.labels.iter().map(|label| (label.key.clone(), json!(label.value))).collect();
            json!({"name": one.name, "value": one.value, "labels": labels})
        })
        .collect();
    for (name, list) in [("conditions", conditions), ("events", events), ("measurements", measurements)] {
        if !list.is_empty() {
            add(name, list.into());
        }
    }
    if let Some(seconds) = desired.requeue_after {
        add("requeueAfter", seconds.into());
    }
    if desired.removes_many {
        add("removesMany", true.into());
    }
}

fn verdict(verdict: &Verdict) -> Value {
    match verdict {
        Verdict::Done => json!("done"),
        Verdict::Wait(waiting) => json!({"wait": {
            "reason": waiting.reason, "message": waiting.message, "seconds": waiting.seconds,
        }}),
        Verdict::Retry(why) => json!({"retry": why}),
        Verdict::Invalid(why) => json!({"invalid": why}),
    }
}

/// A child as the plugin returned it: without what the host adds, and without a namespace that is the object's own. Of an object outside of
/// namespaces, that is where an object without one is taken to be.
fn plain(child: &DesiredChild, namespace: &str) -> Value {
    let namespace = if namespace.is_empty() { DEFAULT_NAMESPACE } else { namespace };
    let mut body = child.body.clone();
    let Some(metadata) = body.get_mut("metadata").and_then(Value::as_object_mut) else { return body };
    metadata.remove("ownerReferences");
    if metadata.get("namespace").and_then(Value::as_str) == Some(namespace) {
        metadata.remove("namespace");
    }
    for name in ["labels", "annotations"] {
        let Some(entries) = metadata.get_mut(name).and_then(Value::as_object_mut) else { continue };
        entries.retain(|key, value| {
            let is_managed_by = key == labels::MANAGED_BY && value == labels::HOST;
            !key.starts_with(labels::PREFIX) && !is_managed_by
        });
        if entries.is_empty() {
            metadata.remove(name);
        }
    }
    body
}

/// What the host does with a child, where that is not the usual.
fn options(child: &DesiredChild, children: &[DesiredChild]) -> Option<(String, Value)> {
    let mut options = Map::new();
    let mut add = |name: &str, value: Value| options.insert(name.to_owned(), value);
    match child.handling {
        Handling::Apply => {}
        Handling::Create => {
            add("handling", "create".into());
        }
        Handling::Keep => {
            add("handling", "keep".into());
        }
    }
    if !child.after.is_empty() {
        add("after", child.after.iter().filter_map(|place| children.get(*place)).map(short_name).collect());
    }
    if child.on_immutable == ImmutablePolicy::Recreate {
        add("onImmutable", "recreate".into());
    }
    if child.body["metadata"]["annotations"][labels::ON_REMOVAL] == labels::KEEP {
        add("onRemoval", "keep".into());
    }
    if !child.unmanaged.is_empty() {
        add("unmanagedFields", child.unmanaged.clone().into());
    }
    (!options.is_empty()).then(|| (short_name(child), Value::Object(options)))
}

/// `KIND/NAME`.
fn short_name(child: &DesiredChild) -> String {
    format!("{}/{}", child.kind.kind, child.name.name)
}
