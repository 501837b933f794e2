//! Server-side apply: merges an applied object into the live one, removes what the manager applied before and no longer does, and
//! finds the fields that other managers own.

use serde_json::Value;

use super::{Entry, Managed, Operation, Writer, strip::strip, update::take_from_others};
use crate::api_server::{
    fields::{Set, compare, merge, remove, set_of},
    schema::Node,
};

/// What an apply made of an object.
#[derive(Debug)]
pub struct Applied {
    /// The new object; none if it is the live one.
    pub object: Option<Value>,
    /// The new owners.
    pub managed: Managed,
}

/// A field that another manager owns with another value.
#[derive(Debug)]
pub struct Conflict {
    /// The owner.
    pub entry: Entry,
    /// The path, as messages show it.
    pub field: String,
}

/// How an object is applied.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// Whether fields of other managers are taken.
    pub force: bool,
    /// Whether the applied object names a resource version that the live one does not have, which counts as a change.
    pub names_another_version: bool,
}

/// Applies an object. Without `force` a field of another manager is a conflict.
///
/// # Errors
/// All conflicts.
pub fn apply(
    live: &Value,
    applied: &Value,
    mut managed: Managed,
    writer: &Writer<'_>,
    how: How,
) -> Result<Applied, Vec<Conflict>> {
    let schema = writer.schema;
    managed = managed.read_back();
    let merged = merge(live, applied, schema);
    let set = set_of(applied, schema).recursive_difference(writer.reset);
    let (index, last) = match managed.position(writer, Operation::Apply) {
        Some(index) => (index, managed.0.get(index).map(|entry| entry.set.clone())),
        None => {
            let key = (writer.manager, Operation::Apply);
            managed.0.push(Entry::new(key, writer.api_version, writer.subresource, Set::default()));
            (managed.0.len() - 1, None)
        }
    };
    if let Some(entry) = managed.0.get_mut(index) {
        entry.api_version = writer.api_version.clone();
        entry.set_fields(set);
    }
    let new = match last {
        Some(last) if !last.is_empty() => prune(merged, &managed, index, (&last, schema)),
        _ => merged,
    };
    let changed = compare(live, &new, schema);
    let is_same = changed.is_same();
    let changed = changed.without(writer.reset);
    let written = changed.modified.union(&changed.added);
    if !how.force && !written.is_empty() {
        let conflicts = conflicts(&managed, &written, index);
        if !conflicts.is_empty() {
            return Err(conflicts);
        }
    }
    take_from_others(&mut managed, &changed, Some(index));
    if let Some(entry) = managed.0.get_mut(index) {
        let stripped = strip(&entry.set);
        entry.set_fields(stripped);
        if !is_same || how.names_another_version {
            entry.touch(writer.now);
        }
    }
    Ok(Applied { object: (!is_same).then_some(new), managed: managed.finish() })
}

fn conflicts(managed: &Managed, written: &Set, but: usize) -> Vec<Conflict> {
    let mut found = Vec::new();
    for (index, entry) in managed.0.iter().enumerate() {
        if index != but {
            let both = entry.set.intersection(written);
            both.each_path("", &mut |field| found.push(Conflict { entry: entry.clone(), field }));
        }
    }
    found
}

/// Removes what the manager applied before and does not apply now, unless another manager owns it.
fn prune(merged: Value, managed: &Managed, index: usize, (last, schema): (&Set, &Node)) -> Value {
    let now = managed.0.get(index).map(|entry| entry.set.clone()).unwrap_or_default();
    // Nothing was dropped, so nothing is to be removed.
    if last.difference(&now).is_empty() {
        return merged;
    }
    let complete = |set: &Set| set.with_declared_parents(schema);
    let last = complete(last);
    let mut pruned = merged.clone();
    remove(&mut pruned, &last, schema);
    let owned = managed.0.iter().fold(Set::default(), |all, entry| all.union(&entry.set));
    let all = complete(&set_of(&merged, schema));
    let kept = complete(&set_of(&pruned, schema)).union(&complete(&owned));
    let mut with_owned = merged.clone();
    remove(&mut with_owned, &all.difference(&kept), schema);
    let kept = complete(&set_of(&with_owned, schema));
    let mut result = merged;
    remove(&mut result, &all.difference(&kept).intersection(&last), schema);
    result
}
