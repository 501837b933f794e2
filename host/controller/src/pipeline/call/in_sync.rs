//! Remembers which live children are in sync with an answer. While they are, check, plan and apply can be skipped, so an edit of
//! the object alone costs a call and no comparison of children. Pure.

use std::{
    collections::{BTreeSet, HashSet},
    hash::{DefaultHasher, Hash},
    sync::{Arc, Mutex, PoisonError},
};

use pilothouse_engine::{Fingerprint, contract::Child};

use crate::{object::Object, pipeline::observe::Observed, raw_json::raw_fields};

/// The live children that are in sync with an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildrenInSync {
    answer: AnswerId,
    /// The fingerprint of all live children.
    states: Fingerprint,
    /// None after an apply, because only a comparison has read the live values.
    compared: Option<Compared>,
}

/// The fields that a comparison reads. The other fields, such as the status, may change: a child's own controller writes them all
/// the time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Compared {
    keys: MetadataKeys,
    /// The fingerprint of these fields of all live children.
    parts: Fingerprint,
}

impl ChildrenInSync {
    /// A comparison of the answer with the live children found no difference to apply.
    pub fn compared(answer: AnswerId, keys: MetadataKeys, observed: &Observed) -> Self {
        let parts = combined_fingerprint(observed, |child| keys.relevant_fingerprint(child));
        Self { answer, states: children_state(observed), compared: Some(Compared { keys, parts }) }
    }

    /// The answer was just applied, without deletes. Compared to `observed`, the writes replaced some states with others.
    pub fn applied(answer: AnswerId, observed: &Observed, writes: &WrittenStates) -> Self {
        let changes = writes.replaced.iter().chain(&writes.written).copied();
        Self { answer, states: children_state(observed).toggled(changes), compared: None }
    }

    /// Whether it belongs to this answer.
    pub fn is_of(&self, answer: AnswerId) -> bool {
        self.answer == answer
    }

    /// Whether no live child changed at all.
    pub fn is_as_seen(&self, observed: &Observed) -> bool {
        self.states == children_state(observed)
    }

    /// The same for the current children, if they are still in sync.
    pub fn refreshed(self, observed: &Observed) -> Option<Self> {
        let states = children_state(observed);
        let same = |compared: &Compared| {
            compared.parts == combined_fingerprint(observed, |child| compared.keys.relevant_fingerprint(child))
        };
        // The whole states come first: they are equal in most cases, and the parts have to be read from the JSON text of every
        // child.
        let agrees = self.states == states || self.compared.as_ref().is_some_and(same);
        agrees.then_some(Self { states, ..self })
    }
}

/// The fingerprints of children before and after writes.
#[derive(Clone, Debug, Default)]
pub struct WrittenStates {
    /// Before the writes.
    pub replaced: Vec<Fingerprint>,
    /// After the writes, as the API server answered.
    pub written: Vec<Fingerprint>,
}

/// The fingerprint of all live children.
pub fn children_state(observed: &Observed) -> Fingerprint {
    combined_fingerprint(observed, Object::fingerprint)
}

fn combined_fingerprint(observed: &Observed, name: impl Fn(&Object) -> Fingerprint) -> Fingerprint {
    Fingerprint::of_all(observed.all_children().map(|child| name(&child.object)))
}

/// The keys of the labels and annotations that an answer sets. Others belong to somebody else.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MetadataKeys(Arc<[Box<str>]>);

impl MetadataKeys {
    /// A set of keys.
    pub fn of<'m>(keys: impl IntoIterator<Item = &'m str>) -> Self {
        let keys: BTreeSet<_> = keys.into_iter().collect();
        Self(keys.into_iter().map(Into::into).collect())
    }

    /// The fingerprint of the fields that a comparison reads. It leaves out what changes with every write (resource version,
    /// generation) and what only others write (status, foreign labels and annotations).
    fn relevant_fingerprint(&self, live: &Object) -> Fingerprint {
        let mut hasher = DefaultHasher::new();
        live.uid.hash(&mut hasher);
        // Without JSON to read, every change of the child counts.
        let Some(fields) = live.text.fields() else { return live.fingerprint() };
        for (field, value) in fields.into_iter().filter(|(field, _)| field != "status") {
            match &*field {
                "metadata" => self.metadata(&value, &mut hasher),
                _ => (field, value).hash(&mut hasher),
            }
        }
        Fingerprint::of_hashed(&hasher)
    }

    fn metadata(&self, text: &str, hasher: &mut DefaultHasher) {
        let Some(fields) = raw_fields(text) else { return text.hash(hasher) };
        for (field, value) in fields {
            match (&*field, raw_fields(value.get())) {
                ("resourceVersion" | "generation", _) => {}
                ("labels" | "annotations", Some(keys)) => {
                    let ours = keys.into_iter().filter(|(mark, _)| self.0.iter().any(|ours| **ours == **mark));
                    ours.for_each(|(mark, value)| (&field, mark, value.get()).hash(hasher));
                }
                (field, _) => (field, value.get()).hash(hasher),
            }
        }
    }
}

/// Lists of keys that many objects share: most objects of a plugin have the same, and a list takes half a kilobyte.
#[derive(Debug, Default)]
pub struct SharedKeys(Mutex<HashSet<MetadataKeys>>);

impl SharedKeys {
    /// The most lists that are shared. A plugin that makes keys of values would have one for each object.
    const MOST: usize = 64;

    /// The same keys, in a list that is shared with other objects.
    pub fn share(&self, keys: MetadataKeys) -> MetadataKeys {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(&keys) {
            return known.clone();
        }
        if known.len() >= Self::MOST {
            known.retain(|keys| Arc::strong_count(&keys.0) > 1);
        }
        if known.len() < Self::MOST {
            known.insert(keys.clone());
        }
        keys
    }
}

/// The fingerprint of the children of an answer, together with everything else that the plan for them depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerId(Fingerprint);

impl AnswerId {
    /// For the plugin version with this digest and the observed object. The schemas are part of it, because the comparison uses
    /// them.
    pub fn of(digest: &str, observed: &Observed, children: &[Child]) -> Self {
        let mut hasher = DefaultHasher::new();
        (digest, &observed.object.uid, children.len()).hash(&mut hasher);
        observed.schemas().for_each(|schema| schema.hash(&mut hasher));
        // A child whose namespace is not served any more is refused, although it agrees with the answer.
        observed.unserved_namespaces().hash(&mut hasher);
        for Child { object, handling, after, on_immutable, on_removal, unmanaged_fields } in children {
            let policies = (*handling as u8, *on_immutable as u8, *on_removal as u8);
            (object, policies, after, unmanaged_fields).hash(&mut hasher);
        }
        Self(Fingerprint::of_hashed(&hasher))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pilothouse_engine::contract::{KindRef, RemovalPolicy};
    use serde_json::{Value, json};

    use super::*;
    use crate::{pipeline::observe::LiveChild, projection::Projected, readiness::ReadinessRules};

    fn child(object: &str) -> Child {
        Child::applied(object.to_owned())
    }

    fn observed(texts: &[Value]) -> Observed {
        let live = |(number, text): (usize, &Value)| {
            let object = Object {
                uid: number.to_string().into(),
                resource_version: text["metadata"]["resourceVersion"].as_str().unwrap_or_default().into(),
                text: text.to_string().into(),
                ..Object::sample("ns", &number.to_string())
            };
            LiveChild { kind: KindRef::new("v1", "ConfigMap"), object: Arc::new(object), projection: Projected::All }
        };
        Observed {
            kind: KindRef::new("example.com/v1", "Web"),
            object: Arc::new(Object::sample("ns", "a")),
            projection: None,
            children: texts.iter().enumerate().map(live).collect(),
            former: Vec::new(),
            kinds: BTreeMap::new(),
            schema: None,
            namespaces: None,
            readiness: ReadinessRules::default(),
        }
    }

    fn live(version: &str) -> Value {
        json!({
            "metadata": {"resourceVersion": version, "labels": {"ours": "1"}, "annotations": {"ours-too": "1"}},
            "data": {"a": "1"},
        })
    }

    fn keys() -> MetadataKeys {
        MetadataKeys::of(["ours", "ours-too"])
    }

    fn answer(children: &[Child]) -> AnswerId {
        AnswerId::of("d", &observed(&[]), children)
    }

    fn compared(children: &[Child], there: &[Value]) -> ChildrenInSync {
        ChildrenInSync::compared(answer(children), keys(), &observed(there))
    }

    fn is_still_in_sync(before: &ChildrenInSync, children: &[Child], there: &[Value]) -> bool {
        before.is_of(answer(children)) && before.clone().refreshed(&observed(there)).is_some()
    }

    #[test]
    fn objects_share_a_list_of_the_same_keys_as_far_as_lists_are_kept() {
        let shared = SharedKeys::default();
        let of = |number: usize| MetadataKeys::of([format!("key-{number}").as_str()]);
        let first = shared.share(of(0));
        assert!(Arc::ptr_eq(&first.0, &shared.share(of(0)).0));
        let in_use: Vec<_> = (0..SharedKeys::MOST).map(|number| shared.share(of(number))).collect();
        let beyond = shared.share(of(SharedKeys::MOST));
        assert!(!Arc::ptr_eq(&beyond.0, &shared.share(of(SharedKeys::MOST)).0), "more than the limit are kept");
        drop(in_use);
        let later = shared.share(of(SharedKeys::MOST));
        assert!(Arc::ptr_eq(&later.0, &shared.share(of(SharedKeys::MOST)).0), "those without an object are kept");
        assert!(Arc::ptr_eq(&first.0, &shared.share(of(0)).0), "one with an object is forgotten");
    }

    #[test]
    fn another_answer_or_another_set_of_children_is_not_in_sync() {
        let there = [live("1"), live("2")];
        let before = compared(&[child("x"), child("y")], &there);
        let mut keeping = child("y");
        keeping.on_removal = RemovalPolicy::Keep;
        for (name, children, there, expected) in [
            ("the same", &[child("x"), child("y")][..], &there[..], true),
            ("another child", &[child("x"), child("z")], &there, false),
            ("fewer children", &[child("x")], &there, false),
            ("another policy", &[child("x"), keeping], &there, false),
            ("one that is gone", &[child("x"), child("y")], &there[..1], false),
        ] {
            assert_eq!(is_still_in_sync(&before, children, there), expected, "{name}");
        }
    }

    #[test]
    fn a_child_is_compared_again_if_a_field_changed_that_an_answer_can_set() {
        let changed = |pointer: &str, value: Value| {
            let mut changed = live("2");
            let (parent, field) = pointer.rsplit_once('/').unwrap_or_default();
            changed.pointer_mut(parent).into_iter().for_each(|parent| parent[field] = value.clone());
            changed
        };
        let wanted = [child("x")];
        let before = compared(&wanted, &[live("1")]);
        for (pointer, value, expected) in [
            ("/metadata/generation", json!(2), true),
            ("/status", json!({"ready": 1}), true),
            ("/metadata/annotations/theirs", json!("1"), true),
            ("/metadata/labels/theirs", json!("1"), true),
            ("/metadata/annotations/ours-too", json!("2"), false),
            ("/metadata/annotations", json!({}), false),
            ("/metadata/labels/ours", json!("2"), false),
            ("/metadata/labels", json!(1), false),
            ("/metadata/ownerReferences", json!([]), false),
            ("/metadata/deletionTimestamp", json!("2026-01-01T00:00:00Z"), false),
            ("/metadata/finalizers", json!(["a/b"]), false),
            ("/data/a", json!("2"), false),
            ("/more", json!(1), false),
        ] {
            let now = changed(pointer, value);
            assert_eq!(is_still_in_sync(&before, &wanted, &[now]), expected, "{pointer}");
        }
    }

    #[test]
    fn children_are_in_sync_after_an_apply_until_they_change() {
        let (before, wanted) = (observed(&[live("1")]), [child("x")]);
        let after = observed(&[live("2")]);
        let states = |observed: &Observed| observed.children.iter().map(|child| child.object.fingerprint()).collect();
        let writes = WrittenStates { replaced: states(&before), written: states(&after) };
        let written = ChildrenInSync::applied(answer(&wanted), &before, &writes);
        assert!(is_still_in_sync(&written, &wanted, &[live("2")]));
        assert!(!is_still_in_sync(&written, &wanted, &[live("1")]));
        assert!(!is_still_in_sync(&written, &wanted, &[live("3")]), "an apply compares nothing");
    }

    #[test]
    fn a_refresh_remembers_the_current_states() {
        let wanted = [child("x")];
        let once = compared(&wanted, &[live("1")]).refreshed(&observed(&[live("2")]));
        assert_eq!(once, Some(compared(&wanted, &[live("2")])));
    }
}
