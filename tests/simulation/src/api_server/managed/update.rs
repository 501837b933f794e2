//! What a write that is no apply does to the owners: whoever changes a field owns it, and all others lose it.

use serde_json::Value;

use super::{Entry, Managed, Operation, Writer, strip::strip};
use crate::api_server::fields::{Comparison, compare};

/// The owners after a write that changed `live` to `new`.
pub fn update(live: &Value, new: &Value, mut managed: Managed, writer: &Writer<'_>) -> Managed {
    managed = managed.read_back();
    let changed = compare(live, new, writer.schema).without(writer.reset);
    if changed.is_same() {
        return managed.finish();
    }
    take_from_others(&mut managed, &changed, None);
    let taken = strip(&changed.modified.union(&changed.added));
    if !taken.is_empty() {
        let index = managed.position(writer, Operation::Update).unwrap_or_else(|| {
            let key = (writer.manager, Operation::Update);
            managed.0.push(Entry::new(
                key,
                writer.api_version,
                writer.subresource,
                crate::api_server::fields::Set::default(),
            ));
            managed.0.len() - 1
        });
        if let Some(entry) = managed.0.get_mut(index) {
            let fields = entry.set.union(&taken);
            entry.set_fields(fields);
            entry.touch(writer.now);
        }
    }
    managed.0.retain(|entry| !entry.set.is_empty());
    managed.cap();
    managed.finish()
}

/// Removes what changed from all entries but one.
pub(super) fn take_from_others(managed: &mut Managed, changed: &Comparison, but: Option<usize>) {
    let taken = changed.modified.union(&changed.added).union(&changed.removed);
    for (index, entry) in managed.0.iter_mut().enumerate() {
        if Some(index) == but {
            continue;
        }
        let left = entry.set.difference(&taken);
        if left != *entry.set {
            entry.set_fields(left);
        }
    }
}
