//! Whether a call can be left out: a plugin is a function of its inputs, so the same inputs have the same answer, and an
//! answer that was carried out needs no carrying out again. Pure.

use std::hash::{DefaultHasher, Hash, Hasher};

use pilothouse_engine::{Lookups, Query, Recorded};

use super::observe::Observed;
use crate::queue::Next;

/// A reconcile that left nothing to do, and what it was based on.
#[derive(Clone, Debug)]
pub struct Converged {
    inputs: u64,
    lookups: Vec<Query>,
    /// What becomes of the key: the same as then.
    pub next: Next,
}

impl Converged {
    /// Remembers a reconcile that changed nothing; none if it read the clock, for then the next one may differ.
    pub fn new(
        digest: &str,
        observed: &Observed,
        recorded: &Recorded,
        lookups: &dyn Lookups,
        next: Next,
    ) -> Option<Self> {
        let inputs = fingerprint(digest, observed, &recorded.lookups, lookups);
        (!recorded.clock_read).then(|| Self { inputs, lookups: recorded.lookups.clone(), next })
    }

    /// Whether a call now would get the same inputs.
    pub fn still_holds(&self, digest: &str, observed: &Observed, lookups: &dyn Lookups) -> bool {
        self.inputs == fingerprint(digest, observed, &self.lookups, lookups)
    }
}

/// Names all inputs of a call: the plugin, the states of the object and its children, what the lookups answer.
fn fingerprint(digest: &str, observed: &Observed, queries: &[Query], lookups: &dyn Lookups) -> u64 {
    let mut hasher = DefaultHasher::new();
    digest.hash(&mut hasher);
    let children = observed.children.iter().map(|(_, child)| child);
    for object in std::iter::once(&observed.object).chain(children) {
        (&object.uid, &object.resource_version).hash(&mut hasher);
    }
    // A kind that comes or goes changes what may be returned.
    observed.kinds.keys().for_each(|kind| kind.hash(&mut hasher));
    for query in queries {
        match query {
            Query::Get { kind, namespace, name } => {
                format!("{:?}", lookups.get(kind, namespace.as_deref(), name)).hash(&mut hasher);
            }
            Query::Select { kind, namespace, selector } => {
                format!("{:?}", lookups.select(kind, namespace.as_deref(), selector)).hash(&mut hasher);
            }
        }
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use pilothouse_engine::{
        NoLookups,
        contract::{KindRef, LookupError},
    };

    use super::*;
    use crate::cache::Object;

    struct Answers(&'static str);

    impl Lookups for Answers {
        fn get(&self, _: &KindRef, _: Option<&str>, _: &str) -> Result<Option<String>, LookupError> {
            Ok(Some(self.0.to_owned()))
        }
        fn select(&self, _: &KindRef, _: Option<&str>, _: &str) -> Result<Vec<String>, LookupError> {
            Ok(Vec::new())
        }
    }

    fn observed(object_version: &str, child_version: &str) -> Observed {
        let object =
            |name, version: &str| Arc::new(Object { resource_version: version.into(), ..Object::sample("ns", name) });
        Observed {
            kind: KindRef::new("example.com/v1", "Web"),
            object: object("a", object_version),
            children: vec![(KindRef::new("v1", "ConfigMap"), object("b", child_version))],
            kinds: BTreeMap::new(),
        }
    }

    #[test]
    fn holds_until_an_input_changes() {
        let before = Converged::new("d", &observed("1", "1"), &Recorded::default(), &NoLookups, Next::Rest);
        let holds = |digest, observed: Observed| {
            before.as_ref().is_some_and(|before| before.still_holds(digest, &observed, &NoLookups))
        };
        assert!(holds("d", observed("1", "1")));
        assert!(!holds("another version", observed("1", "1")));
        assert!(!holds("d", observed("2", "1")));
        assert!(!holds("d", observed("1", "2")));
        assert!(!holds("d", Observed { children: Vec::new(), ..observed("1", "1") }));
    }

    #[test]
    fn lookups_are_asked_again_and_the_clock_is_never_the_same() {
        let get = Query::Get { kind: KindRef::new("v1", "Secret"), namespace: None, name: "s".to_owned() };
        let recorded = Recorded { lookups: vec![get], ..Recorded::default() };
        let before = Converged::new("d", &observed("1", "1"), &recorded, &Answers("one"), Next::Rest);
        let holds = |answer| {
            before.as_ref().is_some_and(|before| before.still_holds("d", &observed("1", "1"), &Answers(answer)))
        };
        assert!(holds("one") && !holds("two"));
        let clock = Recorded { clock_read: true, ..Recorded::default() };
        assert!(Converged::new("d", &observed("1", "1"), &clock, &NoLookups, Next::Rest).is_none());
    }
}
