//! `Ready` must not be true while a child that it speaks of is wrong for longer than the events take. Looks at every change. Judges
//! only while nothing fails: a host that cannot write cannot say so either.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;
use tokio::time::Instant;

use super::{
    Property, Violation,
    at_rest::{in_words, of_child},
    snapshot::{Snapshot, ready},
};
use crate::plugin::{
    decide::{Inputs, is_available, says_children},
    spec::Spec,
    version::Version,
};

/// Since when which child of which object is wrong although `Ready` is true: the UID of the object, and the child in words.
pub type WrongSince = BTreeMap<(String, String), Instant>;

/// How long a child may be wrong while its object is ready, by how long a request and an event take.
///
/// The event must arrive, and the host may have just begun to look at what was there before. It writes a child with up to ten requests
/// one after another (create, read, update, try, delete, create anew, each with its answer), and then the status, of which there is one
/// a second at most.
pub fn patience(latency: u32, lag: u32) -> Duration {
    Duration::from_millis(2_000 + 2 * u64::from(lag) + 40 * u64::from(latency))
}

/// Notes which children are wrong now, and forgets those that are right.
pub fn note(since: &mut WrongSince, snapshot: &Snapshot, version: Version) {
    let apps = snapshot.apps.iter().filter_map(|app| {
        let problem = super::app::wrong_although_ready(snapshot, &app.value)?;
        Some((app.uid().to_owned(), format!("{} is ready, and {problem}", app.name())))
    });
    let objects = snapshot.objects.iter().flat_map(|object| wrong_children(snapshot, &object.value, version));
    let wrong: Vec<_> = objects.chain(apps).collect();
    since.retain(|known, _| wrong.contains(known));
    for child in wrong {
        since.entry(child).or_insert_with(Instant::now);
    }
}

/// The first child that is wrong for too long.
pub fn overdue(since: &WrongSince, patience: Duration) -> Option<Violation> {
    let ((_, what), _) = since.iter().find(|(_, since)| since.elapsed() > patience)?;
    let what = format!("{what} for more than {patience:?}");
    Some(Violation { property: Property::ReadyIsTrue, what })
}

/// The children of an object that are wrong although its `Ready` is true and about its present generation.
fn wrong_children(snapshot: &Snapshot, object: &Value, version: Version) -> Vec<(String, String)> {
    let metadata = &object["metadata"];
    let is_ready = ready(object)["status"] == "True"
        && object["status"]["observedGeneration"] == metadata["generation"]
        && metadata["deletionTimestamp"].is_null();
    if !is_ready {
        return Vec::new();
    }
    let (followed, spec) = (snapshot.followed(object), Spec::of(object));
    if !says_children(&spec, followed.as_deref()) {
        return Vec::new();
    }
    let all: Vec<_> = snapshot.values().collect();
    let inputs = Inputs { version, object, children: &all, followed: followed.as_deref() };
    let uid = metadata["uid"].as_str().unwrap_or_default();
    let wrong = version.wanted(&spec).into_iter().filter_map(|child| {
        // Where the plugin leaves it to the host, `Ready` speaks of how far the children are as well.
        let is_unready = || version.leaves_ready() && !is_available(child, inputs);
        let problem =
            of_child(snapshot, child, inputs).or_else(|| is_unready().then(|| "is not available".to_owned()))?;
        let name = metadata["name"].as_str().unwrap_or_default();
        Some((uid.to_owned(), format!("{name} is ready, and its child {} {problem}", in_words(object, child))))
    });
    wrong.collect()
}
