//! Whether a call can be left out: a plugin is a function of its inputs, so the same inputs have the same answer, and an
//! answer that was carried out needs no carrying out again. Pure.

use std::hash::{DefaultHasher, Hash, Hasher};

use pilothouse_engine::{Lookups, Query, Recorded, fingerprint};

use super::observe::Observed;

/// A reconcile that left nothing to do, and what it was based on.
#[derive(Clone, Debug)]
pub struct Converged {
    states: u64,
    /// What was looked up and the fingerprints of the answers, as they were given in the call.
    lookups: Vec<(Query, u64)>,
}

impl Converged {
    /// Remembers a reconcile that changed nothing; none if it read the clock, for then the next one may differ.
    pub fn new(digest: &str, observed: &Observed, recorded: &Recorded) -> Option<Self> {
        let states = states(digest, observed);
        (!recorded.clock_read).then(|| Self { states, lookups: recorded.lookups.clone() })
    }

    /// Whether a call now would get the same inputs.
    pub fn still_holds(&self, digest: &str, observed: &Observed, lookups: &dyn Lookups) -> bool {
        self.states == states(digest, observed)
            && self.lookups.iter().all(|(query, answer)| *answer == ask_again(query, lookups))
    }
}

/// Names the plugin and the states of the object and its children.
fn states(digest: &str, observed: &Observed) -> u64 {
    let mut hasher = DefaultHasher::new();
    digest.hash(&mut hasher);
    let children = observed.children.iter().chain(&observed.former).map(|(_, child)| child);
    for object in std::iter::once(&observed.object).chain(children) {
        (&object.uid, &object.resource_version).hash(&mut hasher);
    }
    // A kind that comes or goes changes what may be returned.
    observed.kinds.keys().for_each(|kind| kind.hash(&mut hasher));
    hasher.finish()
}

fn ask_again(query: &Query, lookups: &dyn Lookups) -> u64 {
    match query {
        Query::Get { kind, namespace, name } => fingerprint(&lookups.get(kind, namespace.as_deref(), name)),
        Query::Select { kind, namespace, selector } => {
            fingerprint(&lookups.select(kind, namespace.as_deref(), selector))
        }
    }
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
            former: Vec::new(),
            kinds: BTreeMap::new(),
        }
    }

    #[test]
    fn holds_until_an_input_changes() {
        let before = Converged::new("d", &observed("1", "1"), &Recorded::default());
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
        let given = ask_again(&get, &Answers("one"));
        let recorded = Recorded { lookups: vec![(get, given)], ..Recorded::default() };
        let before = Converged::new("d", &observed("1", "1"), &recorded);
        let holds = |answer| {
            before.as_ref().is_some_and(|before| before.still_holds("d", &observed("1", "1"), &Answers(answer)))
        };
        assert!(holds("one") && !holds("two"));
        let clock = Recorded { clock_read: true, ..Recorded::default() };
        assert!(Converged::new("d", &observed("1", "1"), &clock).is_none());
    }
}
