//! The result of applying a plan. Values only.

use pilothouse_engine::Fingerprint;
use serde_json::Value;

use super::{
    failure::{Failure, FailureReason},
    refused::RefusedWrite,
};
use crate::{
    labels,
    object::Object,
    pipeline::plan::{Delete, Recreation, Write, WriteCause},
};

/// The result of applying a plan.
#[derive(Debug, Default)]
pub struct Applied {
    /// The successful writes.
    pub written: Vec<Written>,
    /// The successful deletes.
    pub deleted: Vec<Delete>,
    /// Children that must be deleted and created again. The next round plans that.
    pub recreations: Vec<Recreation>,
    /// The failures. After a failed write no delete is tried.
    pub failures: Vec<Failure>,
    /// The failed writes that the API server refuses because of their content.
    pub refused: Vec<RefusedWrite>,
}

impl Applied {
    /// Whether the only failures are outdated caches, which have been refreshed since.
    pub fn is_outdated(&self) -> bool {
        let is_outdated = |failure: &Failure| failure.reason == FailureReason::Outdated;
        !self.failures.is_empty() && self.failures.iter().all(is_outdated)
    }

    /// Whether a child was created that had to wait for others.
    pub fn has_created_in_order(&self) -> bool {
        let is_in_order = |write: &Write| write.cause == WriteCause::Missing && !write.child.after.is_empty();
        self.written.iter().any(|written| is_in_order(&written.write))
    }

    /// The children that were created, as they were asked for.
    pub fn created(&self) -> Vec<&Value> {
        let created =
            self.written.iter().filter(|written| written.write.cause == WriteCause::Missing && written.has_changed);
        created.map(|written| &written.write.child.body).collect()
    }

    /// Whether anything changed in the cluster.
    pub fn has_changed_anything(&self) -> bool {
        self.written.iter().any(|written| written.has_changed) || !self.deleted.is_empty()
    }
}

/// A successful write.
#[derive(Debug)]
pub struct Written {
    /// The write.
    pub write: Write,
    /// Whether it changed the child. A write without effect keeps the resource version; a repair that renews the host's marks and nothing
    /// else repaired nothing.
    pub has_changed: bool,
    /// The fingerprint of the child after the write.
    pub state: Fingerprint,
}

impl Written {
    /// A write, and the child as it is after it.
    pub(super) fn of(write: Write, after: &Object) -> Self {
        let is_same = |live: &Object| live.resource_version == after.resource_version;
        let has_changed = match &write.cause {
            WriteCause::Missing => true,
            WriteCause::Changed(state) => !is_same(&state.live),
            WriteCause::Drifted(state) => !is_same(&state.live) && content(&state.live) != content(after),
        };
        Self { write, has_changed, state: after.fingerprint() }
    }
}

/// An object without what the host's writes change by themselves. A text that is no JSON equals no other one.
fn content(object: &Object) -> Option<Value> {
    let mut all: Value = serde_json::from_str(&object.text.read()).ok()?;
    let metadata = all.get_mut("metadata")?.as_object_mut()?;
    metadata.remove("resourceVersion");
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.retain(|key, _| key != labels::APPLIED && key != labels::MADE_BY);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use pilothouse_engine::contract::{Handling, ImmutablePolicy, KindRef};
    use serde_json::json;

    use super::*;
    use crate::{
        object::ObjectRef,
        pipeline::{check::DesiredChild, plan::LiveState},
    };

    fn object(version: &str, mark: &str, value: &str) -> Object {
        let metadata = json!({"resourceVersion": version, "annotations": {labels::APPLIED: mark}});
        let text = json!({"metadata": metadata, "data": {"key": value}}).to_string().into();
        Object { resource_version: version.into(), text, ..Object::sample("ns", "a") }
    }

    fn has_changed(cause: WriteCause, after: &Object) -> bool {
        let child = DesiredChild {
            kind: KindRef::new("v1", "ConfigMap"),
            name: ObjectRef::new("ns", "a"),
            body: Value::Null,
            digest: String::new(),
            handling: Handling::Apply,
            after: Vec::new(),
            order: 0,
            on_immutable: ImmutablePolicy::Fail,
            unmanaged: Vec::new(),
        };
        Written::of(Write { child, cause, list_repair: None, handover: None, value_patch: None }, after).has_changed
    }

    #[test]
    fn a_repair_that_renews_a_mark_alone_repaired_nothing() {
        let state = || LiveState { live: Arc::new(object("1", "f", "x")), differences: Vec::new() };
        for (after, drifted, changed) in [
            (object("1", "f", "x"), false, false),
            (object("2", "f-a", "x"), false, true),
            (object("2", "f-a", "y"), true, true),
        ] {
            assert_eq!(has_changed(WriteCause::Drifted(state()), &after), drifted, "{}", after.text.read());
            assert_eq!(has_changed(WriteCause::Changed(state()), &after), changed, "{}", after.text.read());
        }
        assert!(has_changed(WriteCause::Missing, &object("1", "f", "x")));
    }
}
