//! Whether the children of an object are like those of a fresh object with the same spec, whatever happened to them before.

use serde_json::Value;

use super::{Property, Violation, at_rest::is_held_up, snapshot::Snapshot};
use crate::{
    kinds,
    plugin::{spec::Spec, version::Version},
};

/// What the name of the fresh object has after that of the one it is compared with.
pub const FRESH: &str = "-fresh";

/// Labels and annotations that others may add begin with this.
pub const FOREIGN: &str = "foreign.example.com/";

/// The first difference between the children of the objects and those of their fresh ones.
pub fn difference(snapshot: &Snapshot, version: Version) -> Option<Violation> {
    let name_of = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let originals =
        snapshot.objects.iter().map(|object| &object.value).filter(|object| !name_of(object).ends_with(FRESH));
    for original in originals {
        let lacks_followed = Spec::of(original).follows.is_some() && snapshot.followed(original).is_none();
        if lacks_followed {
            // The plugin leaves the children as they are, and a fresh object has none.
            continue;
        }
        let name = name_of(original);
        let fresh = format!("{name}{FRESH}");
        let Some(twin) = snapshot.objects.iter().map(|object| &object.value).find(|object| name_of(object) == fresh)
        else {
            continue;
        };
        if [original, twin].iter().any(|object| is_held_up(snapshot, object, version)) {
            // A Job has completed before it was suspended, and that of the fresh object never does; or the other way round.
            continue;
        }
        let (before, after) = (children(snapshot, original, &name), children(snapshot, twin, &fresh));
        if let Some((here, there)) = before.iter().zip(&after).find(|(here, there)| here != there) {
            let what = format!("a child of {name} is\n  {here}\nbut that of a fresh object\n  {there}");
            return Some(Violation { property: Property::LikeFresh, what });
        }
        if before.len() != after.len() {
            let what = format!("{name} has {} children, a fresh object {}", before.len(), after.len());
            return Some(Violation { property: Property::LikeFresh, what });
        }
    }
    None
}

/// The children of an object in order, without what differs between any two objects.
fn children(snapshot: &Snapshot, object: &Value, name: &str) -> Vec<Value> {
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    let mut children: Vec<_> = snapshot.controlled_by(uid).map(|child| normalised(child, name)).collect();
    let key = |child: &Value| {
        [&child["kind"], &child["metadata"]["name"], &child["metadata"]["namespace"]].map(Value::to_string)
    };
    children.sort_by_key(key);
    children
}

fn normalised(child: &Value, owner: &str) -> Value {
    let mut child = child.clone();
    kinds::without_what_the_server_adds(&mut child);
    let metadata = std::mem::take(&mut child["metadata"]);
    let map = |field: &str| {
        let entries = metadata[field].as_object().into_iter().flatten();
        let ours = |key: &str| !key.starts_with(FOREIGN) && !key.starts_with("pilothouse.dev/");
        let kept = entries.filter(|(key, _)| ours(key) && *key != "deployment.kubernetes.io/revision");
        Value::Object(kept.map(|(key, value)| (key.clone(), value.clone())).collect())
    };
    child["metadata"] = serde_json::json!({
        "name": metadata["name"], "namespace": metadata["namespace"], "labels": map("labels"), "annotations": map("annotations"),
    });
    child.as_object_mut().map(|child| child.remove("status"));
    renamed(child, owner)
}

/// A value with the owner's name taken out of all names.
fn renamed(value: Value, owner: &str) -> Value {
    match value {
        Value::String(text) => match text.strip_prefix(owner).and_then(|rest| rest.strip_prefix('-')) {
            Some(rest) => Value::String(format!("*-{rest}")),
            None => Value::String(text),
        },
        Value::Array(items) => items.into_iter().map(|item| renamed(item, owner)).collect(),
        Value::Object(fields) => {
            Value::Object(fields.into_iter().map(|(key, field)| (key, renamed(field, owner))).collect())
        }
        other => other,
    }
}
