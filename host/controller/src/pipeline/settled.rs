//! Whether an answer's children are as they were when they were last compared with what is there: then there is nothing
//! to check, plan or apply. An object that is touched, or asked about after a write, costs a call, and no comparison. Pure.

use std::hash::{DefaultHasher, Hash, Hasher};

use pilothouse_engine::contract::Child;

use super::{apply::Applied, observe::Observed};
use crate::cache::Object;

/// An answer's children and the states of the live ones that agree with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    answer: u64,
    /// Of all live children together; their order does not matter.
    states: u64,
}

impl Settled {
    /// The answer and what is there now.
    pub fn now(answer: &Answer, observed: &Observed) -> Self {
        let children = observed.children.iter().chain(&observed.former);
        Self { answer: answer.0, states: children.fold(0, |all, (_, child)| all ^ state(child)) }
    }

    /// The answer and what is there once it was applied without deletes: what the API server returned of each write in the
    /// place of what was observed.
    pub fn after(answer: &Answer, observed: &Observed, applied: &Applied) -> Self {
        let before = Self::now(answer, observed);
        let replaced = applied.written.iter().filter_map(|written| written.write.cause.live()).map(|live| state(live));
        let written = applied.written.iter().map(|written| written.state);
        Self { states: replaced.chain(written).fold(before.states, |all, state| all ^ state), ..before }
    }
}

/// Names the children of an answer of one version of a plugin, for an object.
#[derive(Clone, Copy, Debug)]
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
    use std::{collections::BTreeMap, sync::Arc};

    use pilothouse_engine::contract::{ImmutablePolicy, KindRef, RemovalPolicy};

    use super::*;

    fn child(object: &str) -> Child {
        Child {
            object: object.to_owned(),
            on_immutable: ImmutablePolicy::Fail,
            on_removal: RemovalPolicy::Delete,
            unmanaged_fields: Vec::new(),
        }
    }

    fn observed(versions: &[&str]) -> Observed {
        let live = |(number, version): (usize, &&str)| {
            let object = Object { resource_version: (*version).into(), ..Object::sample("ns", &number.to_string()) };
            (KindRef::new("v1", "ConfigMap"), Arc::new(Object { uid: number.to_string().into(), ..object }))
        };
        Observed {
            kind: KindRef::new("example.com/v1", "Web"),
            object: Arc::new(Object::sample("ns", "a")),
            excerpt: None,
            children: versions.iter().enumerate().map(live).collect(),
            former: Vec::new(),
            kinds: BTreeMap::new(),
        }
    }

    fn settled(answer: &[Child], versions: &[&str]) -> Option<Settled> {
        Answer::of("d", &Object::sample("ns", "a"), Some(answer))
            .map(|answer| Settled::now(&answer, &observed(versions)))
    }

    #[test]
    fn any_other_answer_or_state_is_not_settled() {
        let before = settled(&[child("x"), child("y")], &["1", "2"]);
        assert_eq!(settled(&[child("x"), child("y")], &["1", "2"]), before);
        let mut keeping = child("y");
        keeping.on_removal = RemovalPolicy::Keep;
        assert_ne!(settled(&[child("x"), child("z")], &["1", "2"]), before);
        assert_ne!(settled(&[child("x")], &["1", "2"]), before);
        assert_ne!(settled(&[child("x"), keeping], &["1", "2"]), before);
        assert_ne!(settled(&[child("x"), child("y")], &["1", "3"]), before);
        assert_ne!(settled(&[child("x"), child("y")], &["1"]), before);
        assert!(Answer::of("d", &Object::sample("ns", "a"), None).is_none(), "children left alone are not compared");
    }
}
