//! Whether an answer's children are as they were when they were last compared with what is there: then there is nothing
//! to check, plan or apply. An object that is touched, or asked about after a write, costs a call, and no comparison. Pure.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use pilothouse_engine::contract::Child;

use super::{apply::Applied, check::DesiredChild, observe::Observed};
use crate::{cache::Object, members::members};

/// An answer's children and the states of the live ones that agree with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    answer: Answer,
    /// Of all live children together; their order does not matter.
    states: u64,
    compared: Option<Compared>,
}

/// What a comparison looked at. A child may be another in all the rest, as its own controller makes it all the time.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Compared {
    marks: Marks,
    /// Of all live children together.
    parts: u64,
}

impl Settled {
    /// The answer and what is there, which agree.
    pub fn now(answer: Answer, marks: Marks, observed: &Observed) -> Self {
        let parts = together(observed, |child| marks.part(child));
        Self { answer, states: states(observed), compared: Some(Compared { marks, parts }) }
    }

    /// The answer and what is there once it was applied without deletes: what the API server returned of each write in the
    /// place of what was observed.
    pub fn after(answer: Answer, observed: &Observed, applied: &Applied) -> Self {
        let before = states(observed);
        let replaced = applied.written.iter().filter_map(|written| written.write.cause.live()).map(|live| state(live));
        let written = applied.written.iter().map(|written| written.state);
        let states = replaced.chain(written).fold(before, |all, state| all ^ state);
        Self { answer, states, compared: None }
    }

    /// The same with what is there now, if that still agrees with this answer.
    pub fn still(self, answer: Answer, observed: &Observed) -> Option<Self> {
        if self.answer == answer { self.still_there(observed) } else { None }
    }

    /// The same with what is there now, if that still agrees with the same answer.
    pub fn still_there(self, observed: &Observed) -> Option<Self> {
        let states = states(observed);
        let same = |compared: &Compared| compared.parts == together(observed, |child| compared.marks.part(child));
        let agrees = self.states == states || self.compared.as_ref().is_some_and(same);
        agrees.then_some(Self { states, ..self })
    }
}

/// Names the states of all live children together.
pub fn states(observed: &Observed) -> u64 {
    together(observed, state)
}

fn together(observed: &Observed, name: impl Fn(&Object) -> u64) -> u64 {
    let children = observed.children.iter().chain(&observed.former);
    children.fold(0, |all, (_, child)| all ^ name(child))
}

/// The labels and annotations that an answer's children have. Others are somebody else's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marks(Arc<[Box<str>]>);

impl Marks {
    /// Those of all children together.
    pub fn of(children: &[DesiredChild]) -> Self {
        let maps = children.iter().flat_map(|child| {
            let metadata = &child.body["metadata"];
            [metadata["labels"].as_object(), metadata["annotations"].as_object()]
        });
        let all: BTreeSet<_> = maps.flatten().flat_map(|map| map.keys()).collect();
        Self(all.into_iter().map(|mark| mark.as_str().into()).collect())
    }

    /// Names what of a live child a comparison looks at: not what changes with every write, nor what only others write.
    fn part(&self, live: &Object) -> u64 {
        let mut hasher = DefaultHasher::new();
        live.uid.hash(&mut hasher);
        // Of what cannot be read, any other version is another.
        let Some(fields) = members(&live.text) else { return state(live) };
        for (field, value) in fields.into_iter().filter(|(field, _)| field != "status") {
            match &*field {
                "metadata" => self.metadata(value.get(), &mut hasher),
                _ => (field, value.get()).hash(&mut hasher),
            }
        }
        hasher.finish()
    }

    fn metadata(&self, text: &str, hasher: &mut DefaultHasher) {
        let Some(fields) = members(text) else { return text.hash(hasher) };
        for (field, value) in fields {
            match (&*field, members(value.get())) {
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
pub struct Answer(u64);

impl Answer {
    /// None if the answer leaves the children as they are.
    pub fn of(digest: &str, object: &Object, children: Option<&[Child]>) -> Option<Self> {
        let children = children?;
        let mut hasher = DefaultHasher::new();
        (digest, &object.uid, children.len()).hash(&mut hasher);
        for Child { object, on_immutable, on_removal, unmanaged_fields } in children {
            let policies = (*on_immutable as u8, *on_removal as u8);
            (object, policies, unmanaged_fields).hash(&mut hasher);
        }
        Some(Self(hasher.finish()))
    }
}

/// Names one state of one live object.
pub fn state(live: &Object) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&live.uid, &live.resource_version).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pilothouse_engine::contract::{ImmutablePolicy, KindRef, RemovalPolicy};
    use serde_json::{Value, json};

    use super::*;

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
            (KindRef::new("v1", "ConfigMap"), Arc::new(object))
        };
        Observed {
            kind: KindRef::new("example.com/v1", "Web"),
            object: Arc::new(Object::sample("ns", "a")),
            excerpt: None,
            children: texts.iter().enumerate().map(live).collect(),
            child_excerpts: Vec::new(),
            former: Vec::new(),
            kinds: BTreeMap::new(),
        }
    }

    fn live(version: &str) -> Value {
        json!({
            "metadata": {"resourceVersion": version, "labels": {"ours": "1"}, "annotations": {"ours-too": "1"}},
            "data": {"a": "1"},
        })
    }

    fn marks() -> Marks {
        let body = json!({"metadata": {"labels": {"ours": "1"}, "annotations": {"ours-too": "1"}}});
        Marks::of(&[DesiredChild {
            kind: KindRef::new("v1", "ConfigMap"),
            name: "0".to_owned(),
            namespace: "ns".to_owned(),
            body,
            fingerprint: String::new(),
            on_immutable: ImmutablePolicy::Fail,
            unmanaged: Vec::new(),
        }])
    }

    fn answer(children: &[Child]) -> Option<Answer> {
        Answer::of("d", &Object::sample("ns", "a"), Some(children))
    }

    fn settled(children: &[Child], there: &[Value]) -> Option<Settled> {
        answer(children).map(|answer| Settled::now(answer, marks(), &observed(there)))
    }

    fn still(before: Option<Settled>, children: &[Child], there: &[Value]) -> Option<Settled> {
        before.zip(answer(children)).and_then(|(before, answer)| before.still(answer, &observed(there)))
    }

    #[test]
    fn any_other_answer_or_set_of_children_is_not_settled() {
        let there = [live("1"), live("2")];
        let before = settled(&[child("x"), child("y")], &there);
        let mut keeping = child("y");
        keeping.on_removal = RemovalPolicy::Keep;
        for (name, children, there, expected) in [
            ("the same", &[child("x"), child("y")][..], &there[..], true),
            ("another child", &[child("x"), child("z")], &there, false),
            ("fewer children", &[child("x")], &there, false),
            ("another policy", &[child("x"), keeping], &there, false),
            ("one that is gone", &[child("x"), child("y")], &there[..1], false),
        ] {
            assert_eq!(still(before.clone(), children, there).is_some(), expected, "{name}");
        }
        assert!(Answer::of("d", &Object::sample("ns", "a"), None).is_none(), "children left alone are not compared");
    }

    #[test]
    fn a_child_is_compared_again_when_something_changed_that_an_answer_can_say() {
        let changed = |pointer: &str, value: Value| {
            let mut changed = live("2");
            let (parent, field) = pointer.rsplit_once('/').unwrap_or_default();
            changed.pointer_mut(parent).into_iter().for_each(|parent| parent[field] = value.clone());
            changed
        };
        let answer = [child("x")];
        let before = settled(&answer, &[live("1")]);
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
            assert_eq!(still(before.clone(), &answer, &[now]).is_some(), expected, "{pointer}");
        }
    }

    #[test]
    fn what_was_just_written_is_settled_as_it_was_written() {
        let (there, answer_of) = ([live("1")], [child("x")]);
        let written = answer(&answer_of).map(|answer| Settled::after(answer, &observed(&there), &Applied::default()));
        assert!(still(written.clone(), &answer_of, &there).is_some());
        assert!(still(written, &answer_of, &[live("2")]).is_none(), "nobody has looked at what was there");
    }

    #[test]
    fn each_look_is_remembered() {
        let answer = [child("x")];
        let once = still(settled(&answer, &[live("1")]), &answer, &[live("2")]);
        assert_eq!(once, settled(&answer, &[live("2")]));
    }
}
