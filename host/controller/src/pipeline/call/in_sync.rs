//! Whether the children that are there are still in sync with an answer that they were compared with before: then there is
//! nothing to check, plan or apply. An object that is touched costs a call, and no comparison. Pure.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash},
    sync::Arc,
};

use pilothouse_engine::{Fingerprint, contract::Child};

use crate::{object::Object, pipeline::observe::Observed, raw_json::raw_fields};

/// An answer's children, and the states of the live ones that are in sync with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChildrenInSync {
    answer: AnswerId,
    /// Of all live children together.
    states: Fingerprint,
    compared: Option<Compared>,
}

/// What a comparison looked at. All the rest of a child may change, as its own controller changes it all the time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Compared {
    marks: Marks,
    /// Of all live children together.
    parts: Fingerprint,
}

impl ChildrenInSync {
    /// The answer and what is there were compared, and agree.
    pub fn compared(answer: AnswerId, marks: Marks, observed: &Observed) -> Self {
        let parts = together(observed, |child| marks.part(child));
        Self { answer, states: states(observed), compared: Some(Compared { marks, parts }) }
    }

    /// The answer was just applied, without deletes. Of what was observed, the states in `replaced` became those in `written`.
    pub fn applied(answer: AnswerId, observed: &Observed, writes: &WrittenStates) -> Self {
        let changes = writes.replaced.iter().chain(&writes.written).copied();
        Self { answer, states: states(observed).toggled(changes), compared: None }
    }

    /// Whether it is about this answer.
    pub fn is_of(&self, answer: AnswerId) -> bool {
        self.answer == answer
    }

    /// Whether the live children are in the very states that were seen last.
    pub fn is_as_seen(&self, observed: &Observed) -> bool {
        self.states == states(observed)
    }

    /// The same with what is there now, if that is still in sync.
    pub fn refreshed(self, observed: &Observed) -> Option<Self> {
        let states = states(observed);
        let same = |compared: &Compared| compared.parts == together(observed, |child| compared.marks.part(child));
        let agrees = self.states == states || self.compared.as_ref().is_some_and(same);
        agrees.then_some(Self { states, ..self })
    }
}

/// The states that writes replaced, and those that they left, as the API server answered.
#[derive(Clone, Debug, Default)]
pub struct WrittenStates {
    /// States of live children that are no more.
    pub replaced: Vec<Fingerprint>,
    /// States that are there instead.
    pub written: Vec<Fingerprint>,
}

/// Names the states of all live children together.
pub fn states(observed: &Observed) -> Fingerprint {
    together(observed, Object::fingerprint)
}

fn together(observed: &Observed, name: impl Fn(&Object) -> Fingerprint) -> Fingerprint {
    Fingerprint::of_all(observed.all_children().map(|child| name(&child.object)))
}

/// The labels and annotations that an answer's children have. Others are somebody else's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marks(Arc<[Box<str>]>);

impl Marks {
    /// These labels and annotations.
    pub fn of<'m>(keys: impl IntoIterator<Item = &'m str>) -> Self {
        let keys: BTreeSet<_> = keys.into_iter().collect();
        Self(keys.into_iter().map(Into::into).collect())
    }

    /// Names what of a live child a comparison looks at: not what changes with every write, nor what only others write.
    fn part(&self, live: &Object) -> Fingerprint {
        let mut hasher = DefaultHasher::new();
        live.uid.hash(&mut hasher);
        // Of what cannot be read, any other version is another.
        let Some(fields) = raw_fields(&live.text) else { return live.fingerprint() };
        for (field, value) in fields.into_iter().filter(|(field, _)| field != "status") {
            match &*field {
                "metadata" => self.metadata(value.get(), &mut hasher),
                _ => (field, value.get()).hash(&mut hasher),
            }
        }
        Fingerprint::of_hashed(&hasher)
    }

    fn metadata(&self, text: &str, hasher: &mut DefaultHasher) {
        let Some(fields) = raw_fields(text) else { return text.hash(hasher) };
        for (field, value) in fields {
            match (&*field, raw_fields(value.get())) {
                ("resourceVersion" | "generation", _) => {}
                ("labels" | "annotations", Some(marks)) => {
                    let ours = marks.into_iter().filter(|(mark, _)| self.0.iter().any(|ours| **ours == **mark));
                    ours.for_each(|(mark, value)| (&field, mark, value.get()).hash(hasher));
                }
                (field, _) => (field, value.get()).hash(hasher),
            }
        }
    }
}

/// Names the children of an answer of one version of a plugin, for an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnswerId(Fingerprint);

impl AnswerId {
    /// Of the version with this digest, for the object that was observed.
    pub fn of(digest: &str, observed: &Observed, children: &[Child]) -> Self {
        let mut hasher = DefaultHasher::new();
        (digest, &observed.object.uid, children.len()).hash(&mut hasher);
        observed.schemas().for_each(|schema| schema.hash(&mut hasher));
        for Child { object, on_immutable, on_removal, unmanaged_fields } in children {
            let policies = (*on_immutable as u8, *on_removal as u8);
            (object, policies, unmanaged_fields).hash(&mut hasher);
        }
        Self(Fingerprint::of_hashed(&hasher))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pilothouse_engine::contract::{ImmutablePolicy, KindRef, RemovalPolicy};
    use serde_json::{Value, json};

    use super::*;
    use crate::{pipeline::observe::LiveChild, plugin::projection::Projected};

    fn child(object: &str) -> Child {
        Child {
            object: object.to_owned(),
            on_immutable: ImmutablePolicy::Fail,
            on_removal: RemovalPolicy::Delete,
            unmanaged_fields: Vec::new(),
        }
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
        }
    }

    fn live(version: &str) -> Value {
        json!({
            "metadata": {"resourceVersion": version, "labels": {"ours": "1"}, "annotations": {"ours-too": "1"}},
            "data": {"a": "1"},
        })
    }

    fn marks() -> Marks {
        Marks::of(["ours", "ours-too"])
    }

    fn answer(children: &[Child]) -> AnswerId {
        AnswerId::of("d", &observed(&[]), children)
    }

    fn compared(children: &[Child], there: &[Value]) -> ChildrenInSync {
        ChildrenInSync::compared(answer(children), marks(), &observed(there))
    }

    fn is_still_in_sync(before: &ChildrenInSync, children: &[Child], there: &[Value]) -> bool {
        before.is_of(answer(children)) && before.clone().refreshed(&observed(there)).is_some()
    }

    #[test]
    fn any_other_answer_or_set_of_children_is_not_settled() {
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
    fn a_child_is_compared_again_when_something_changed_that_an_answer_can_say() {
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
    fn what_was_just_written_is_in_sync_as_it_was_written() {
        let (before, wanted) = (observed(&[live("1")]), [child("x")]);
        let after = observed(&[live("2")]);
        let states = |observed: &Observed| observed.children.iter().map(|child| child.object.fingerprint()).collect();
        let writes = WrittenStates { replaced: states(&before), written: states(&after) };
        let written = ChildrenInSync::applied(answer(&wanted), &before, &writes);
        assert!(is_still_in_sync(&written, &wanted, &[live("2")]));
        assert!(!is_still_in_sync(&written, &wanted, &[live("1")]));
        assert!(!is_still_in_sync(&written, &wanted, &[live("3")]), "nobody has looked at what was there");
    }

    #[test]
    fn each_look_is_remembered() {
        let wanted = [child("x")];
        let once = compared(&wanted, &[live("1")]).refreshed(&observed(&[live("2")]));
        assert_eq!(once, Some(compared(&wanted, &[live("2")])));
    }
}
