//! Remembers which children could not be written, to tell the plugin. Pure.

use std::collections::BTreeMap;

use pilothouse_engine::contract::{KindRef, RefusedChild};

use super::{
    applied::Applied,
    failure::{Failure, FailureClass, FailureReason},
};
use crate::object::ObjectRef;

/// The children of one object that could not be written for a reason that does not pass by itself.
///
/// A child that is no longer returned stays in it until the object's spec changes: if it was forgotten, a plugin that leaves out what was
/// refused would return it again in the next call.
#[derive(Clone, Debug, Default)]
pub struct RefusedChildren {
    /// The object's generation whose answers were refused.
    generation: i64,
    refused: BTreeMap<(KindRef, ObjectRef), Refusal>,
}

#[derive(Clone, Debug, PartialEq)]
struct Refusal {
    reason: FailureReason,
    message: String,
}

impl RefusedChildren {
    /// The refusals, for the request of a call about this generation of the object.
    pub fn told(&self, generation: i64) -> Vec<RefusedChild> {
        let refused = self.refused.iter().filter(|_| self.generation == generation);
        refused
            .map(|((kind, name), refusal)| RefusedChild {
                kind: kind.clone().into(),
                namespace: (!name.namespace.is_empty()).then(|| name.namespace.to_string()),
                name: name.name.to_string(),
                reason: refusal.reason.as_str().to_owned(),
                message: refusal.message.clone(),
            })
            .collect()
    }

    /// Takes note of what was written and refused of an answer about this generation. Returns whether the plugin has something new to
    /// be told.
    pub fn update(&mut self, generation: i64, applied: &Applied) -> bool {
        let mut refused = std::mem::take(&mut self.refused);
        // A new spec may be the answer to what was refused, so the plugin starts without a record of it.
        if self.generation != generation {
            refused.clear();
        }
        let before = refused.clone();
        // A child that no longer is refused is not named any more, though others of the same answer may be.
        for written in &applied.written {
            refused.remove(&(written.write.child.kind.clone(), written.write.child.name.clone()));
        }
        for failure in applied.failures.iter().filter(|failure| lasts(failure)) {
            let Some(child) = &failure.child else { continue };
            let refusal = Refusal { reason: failure.reason, message: failure.message.clone() };
            refused.insert((child.kind.clone(), child.name.clone()), refusal);
        }
        let is_new = refused != before;
        (self.generation, self.refused) = (generation, refused);
        is_new
    }
}

/// Whether a failure lasts until somebody changes something: the plugin, the cluster's administrator, or whoever used up a quota.
fn lasts(failure: &Failure) -> bool {
    let is_by_cluster = matches!(failure.reason, FailureReason::AdmissionDenied | FailureReason::NamespaceTerminating);
    is_by_cluster || failure.reason.class() == FailureClass::Permanent
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::apply::failure::FailedChild;

    fn failed(reason: FailureReason, name: &str) -> Applied {
        let child = FailedChild { kind: KindRef::new("v1", "Secret"), name: ObjectRef::new("ns", name) };
        let failure = Failure { child: Some(child.into()), ..Failure::new(reason, "no") };
        Applied { failures: vec![failure], ..Applied::default() }
    }

    #[test]
    fn a_refusal_is_told_until_the_objects_spec_changes() {
        let mut refused = RefusedChildren::default();
        assert!(refused.update(1, &failed(FailureReason::Forbidden, "a")), "it is new");
        assert!(!refused.update(1, &failed(FailureReason::Forbidden, "a")), "it is known");
        assert!(!refused.update(1, &Applied::default()), "the child is no longer returned");
        let told = refused.told(1);
        let names: Vec<_> = told.iter().map(|child| (&*child.name, &*child.reason)).collect();
        assert_eq!(names, [("a", "Forbidden")]);
        assert!(refused.told(2).is_empty(), "the object has another spec");
        assert!(refused.update(2, &failed(FailureReason::AdmissionDenied, "b")));
        assert_eq!(refused.told(2).len(), 1);
    }

    #[test]
    fn what_passes_by_itself_is_not_told() {
        let mut refused = RefusedChildren::default();
        for reason in [FailureReason::Conflict, FailureReason::AwaitingDeletion, FailureReason::TooManyRequests] {
            assert!(!refused.update(1, &failed(reason, "a")), "{reason}");
        }
        assert!(refused.told(1).is_empty());
    }
}
