//! What a write through the scale does to the owners of the replicas. The real server takes the replicas out of the entries of those
//! who wrote them by updates, whatever the write changed, and it tracks nobody where nobody owned them before.

use std::sync::Arc;

use super::{Entry, Managed, Operation};
use crate::api_server::fields::{Element, Set};

/// What was written as the replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// What they were before.
    Same,
    /// Zero, which the scale leaves out, and so nobody owns it.
    Zero,
    /// Another number.
    Number,
}

impl Managed {
    /// The owners after a write through the scale.
    #[must_use]
    pub fn through_scale(mut self, path: &[String], writer: (&str, &Arc<str>), written: Written) -> Self {
        let ((manager, api_version), has_changed) = (writer, written != Written::Same);
        let replicas = set_of_path(path);
        let mut owners = Vec::new();
        for entry in &mut self.0 {
            if entry.set.intersection(&replicas).is_empty() {
                continue;
            }
            let is_kept = entry.operation == Operation::Apply && !has_changed;
            if is_kept {
                continue;
            }
            let left = entry.set.difference(&replicas);
            if !has_changed {
                let key = (&*entry.manager, entry.operation);
                owners.push(Entry::new(key, &entry.api_version, &entry.subresource, replicas.clone()));
            } else if owners.is_empty() && written == Written::Number {
                owners.push(Entry::new((manager, Operation::Update), api_version, "scale", replicas.clone()));
            }
            entry.set_fields(left);
        }
        self.0.extend(owners);
        self.finish()
    }
}

fn set_of_path(path: &[String]) -> Set {
    let mut steps = path.iter().rev();
    let mut set = Set::default();
    if let Some(last) = steps.next() {
        set.insert(Element::Field(last.as_str().into()));
    }
    steps.fold(set, |set, step| {
        let mut parent = Set::default();
        parent.insert_below(Element::Field(step.as_str().into()), set);
        parent
    })
}
