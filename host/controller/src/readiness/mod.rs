//! How far an object is: as its spec says, on its way, failed, or being deleted. Computed from the object alone. Pure.
//!
//! # Flow
//!
//! [`ReadinessRules::readiness`] first looks at what all kinds have in common, then at the rules of the kind (`built_in.rs`), and of a kind
//! without rules at its condition `Ready`. A plugin may have rules of its own for kinds of its children (`declared.rs`).
//!
//! # Guarantees
//!
//! - The rules are those of kstatus (sigs.k8s.io/cli-utils), which `kubectl`, Flux and Argo CD follow, except for those below.
//! - A kind without a status is current once it exists.
//!
//! # Caveats
//!
//! - A Job is current once it is complete. For kstatus it is while it runs, and then nothing could wait for it.
//! - A claim that is not bound yet is current: it may wait for its first consumer, which may in turn wait for the claim. Which of both
//!   it does is not in the claim.
//! - There is no clock, so a Pod that cannot be scheduled is in progress, however long it waits.

mod built_in;
mod common;
mod declared;
mod fields;
mod not_current;
mod parts;

use std::{borrow::Cow, sync::Arc};

use pilothouse_engine::{
    ChildReadiness, Manifest,
    contract::{KindRef, Readiness, ReadinessStatus},
};
use serde_json::Value;

use self::{
    fields::condition,
    not_current::{in_progress, not_current},
    parts::Parts,
};
use crate::{lines::shortened, object::Object};

/// The most bytes that are told of an object that is not as its spec says. Where it waits for a child of its own, which waits for one, and so
/// on, the words of each hold those of all below it: without an end, each change of the last one would be a change of all statuses above.
const MAX_OBSTACLE: usize = 256;

/// Whether a condition of a status is true.
pub fn is_true(status: &Value, condition_type: &str) -> bool {
    condition(status, condition_type).is_some_and(|condition| condition.status == "True")
}

/// The rules by which the children of one plugin are judged.
#[derive(Clone, Debug, Default)]
pub struct ReadinessRules {
    /// The plugin's own ones.
    declared: Arc<[ChildReadiness]>,
}

impl ReadinessRules {
    /// The rules for the children of a plugin.
    pub fn declared(manifest: &Manifest) -> Self {
        manifest.child_readiness.iter().cloned().collect()
    }

    /// How far an object of a kind is.
    pub fn readiness(&self, kind: &KindRef, object: &Object) -> Readiness {
        if object.deleting {
            return not_current(ReadinessStatus::Terminating, "Terminating", "it is being deleted");
        }
        match self.declared.iter().find(|declared| declared.kind == *kind) {
            Some(declared) => declared::readiness(declared, object),
            None => by_rules_of_kind(kind, object),
        }
    }

    /// Why an object of a kind is not as its spec says, in a few words; none if it is.
    pub fn obstacle(&self, kind: &KindRef, object: &Object) -> Option<String> {
        let Readiness { status, reason, message } = self.readiness(kind, object);
        let why = if message.is_empty() { &reason } else { &message };
        (status != ReadinessStatus::Current).then(|| shortened(why, MAX_OBSTACLE))
    }
}

impl FromIterator<ChildReadiness> for ReadinessRules {
    fn from_iter<I: IntoIterator<Item = ChildReadiness>>(declared: I) -> Self {
        Self { declared: declared.into_iter().collect() }
    }
}

fn by_rules_of_kind(kind: &KindRef, object: &Object) -> Readiness {
    let Some(parts) = parts(kind, object) else { return Readiness::current() };
    common::readiness(&parts.status, object.generation)
        .or_else(|| built_in::readiness(kind, &parts))
        .unwrap_or_else(|| by_ready_condition(&parts.status))
}

/// None if there is nothing to read: then the object is current once it exists.
fn parts(kind: &KindRef, object: &Object) -> Option<Parts> {
    let (status, has_rules) = (object.status_text(), built_in::has_rules(kind));
    if status.is_none() && !has_rules {
        return None;
    }
    let parse = |part: Option<Cow<'_, str>>| part.and_then(|part| serde_json::from_str(&part).ok()).unwrap_or_default();
    let spec = has_rules.then(|| object.text.field("spec")).flatten();
    Some(Parts { spec: parse(spec), status: parse(status) })
}

fn by_ready_condition(status: &Value) -> Readiness {
    match condition(status, "Ready") {
        Some(ready) if ready.status != "True" => in_progress(ready.reason_or("NotReady"), ready.message),
        _ => Readiness::current(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judged(api_version: &str, kind: &str, object: Value) -> (ReadinessStatus, String) {
        let kind = KindRef::new(api_version, kind);
        let deleting = !object["metadata"]["deletionTimestamp"].is_null();
        let generation = object["metadata"]["generation"].as_i64().unwrap_or(1);
        let object = Object { text: object.to_string().into(), generation, deleting, ..Object::sample("ns", "a") };
        let Readiness { status, reason, .. } = ReadinessRules::default().readiness(&kind, &object);
        (status, reason)
    }

    #[test]
    fn what_is_told_of_a_chain_of_owners_does_not_grow_with_each() {
        let (kind, rules) = (KindRef::new("example.com/v1", "Any"), ReadinessRules::default());
        let mut said = "the last one waits".to_owned();
        for _ in 0..50 {
            let ready = json!({"type": "Ready", "status": "False", "reason": "ChildrenNotReady", "message": said});
            let object = json!({"status": {"conditions": [ready]}});
            let object = Object { text: object.to_string().into(), ..Object::sample("ns", "a") };
            said = format!("Any 'a': {}", rules.obstacle(&kind, &object).unwrap_or_default());
        }
        assert!(said.len() < 2 * MAX_OBSTACLE && said.ends_with('…'), "{said}");
    }

    #[test]
    fn what_all_kinds_have_in_common_comes_first() {
        use ReadinessStatus::{Current, Failed, InProgress, Terminating};
        let condition = |name: &str, status: &str| json!({"status": {"conditions": [{"type": name, "status": status, "reason": "Why", "message": "m"}]}});
        for (object, status, reason) in [
            (json!({}), Current, ""),
            (json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}), Terminating, "Terminating"),
            (
                json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 1}}),
                InProgress,
                "LatestGenerationNotObserved",
            ),
            (json!({"metadata": {"generation": 2}, "status": {"observedGeneration": 2}}), Current, ""),
            (condition("Stalled", "True"), Failed, "Why"),
            (condition("Stalled", "False"), Current, ""),
            (condition("Reconciling", "True"), InProgress, "Why"),
            (condition("Ready", "True"), Current, ""),
            (condition("Ready", "False"), InProgress, "Why"),
            (condition("Ready", "Unknown"), InProgress, "Why"),
            (json!({"status": {"conditions": [{"type": "Ready", "status": "False"}]}}), InProgress, "NotReady"),
            (json!({"status": "up"}), Current, ""),
        ] {
            let found = judged("example.com/v1", "Any", object.clone());
            assert_eq!(found, (status, reason.to_owned()), "{object}");
        }
    }
}
