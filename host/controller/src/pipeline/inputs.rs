//! Whether a call can be left out: a plugin is a function of its inputs, so the same inputs have the same answer, and an
//! answer that was carried out needs no carrying out again. Pure.

use std::hash::{DefaultHasher, Hash, Hasher};

use pilothouse_engine::{Lookups, Query, Recorded, fingerprint};

use super::{excerpt::Excerpts, observe::Observed, report::status_text, settled};
use crate::{cache::Object, labels};

/// What a call is based on, but for what the plugin looks up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inputs {
    object: State,
    others: u64,
    /// The children, with all that is theirs.
    children: u64,
}

impl Inputs {
    /// The inputs of a call of the version of a plugin that has this digest.
    pub fn of(digest: &str, observed: &Observed) -> Self {
        Self {
            object: State::of(&observed.object, observed.excerpt.as_deref()),
            others: others(digest, observed),
            children: settled::states(observed),
        }
    }
}

/// A reconcile that left nothing to do, and what it was based on.
#[derive(Clone, Debug)]
pub struct Converged {
    inputs: Inputs,
    /// What was looked up and the fingerprints of the answers, as they were given in the call.
    lookups: Vec<(Query, u64)>,
}

impl Converged {
    /// Remembers a reconcile that changed nothing; none if it read the clock, for then the next one may differ.
    pub fn new(inputs: Inputs, recorded: &Recorded) -> Option<Self> {
        (!recorded.clock_read).then(|| Self { inputs, lookups: recorded.lookups.clone() })
    }

    /// The same reconcile, after the object's status was written as it says: the plugin is shown the same as before, or would
    /// have to be asked again.
    pub fn reported(self, after: State) -> Option<Self> {
        let inputs = Inputs { object: after, ..self.inputs };
        (self.inputs.object.shown == after.shown).then_some(Self { inputs, ..self })
    }

    /// Whether a call now would get the same.
    pub fn still_holds(&self, inputs: Inputs, lookups: &dyn Lookups) -> bool {
        let shown = |inputs: Inputs| (inputs.object, inputs.others);
        shown(self.inputs) == shown(inputs)
            && self.lookups.iter().all(|(query, answer)| *answer == ask_again(query, lookups))
    }

    /// Whether the children are as they were, also where the plugin does not look.
    pub fn has_same_children(&self, inputs: Inputs) -> bool {
        self.inputs.children == inputs.children
    }

    /// The same, with children that changed where it does not matter.
    pub fn with_children(self, inputs: Inputs) -> Self {
        Self { inputs: Inputs { children: inputs.children, ..self.inputs }, ..self }
    }
}

/// Names one state of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// What the plugin is shown.
    shown: u64,
    /// What else the host goes by.
    host: u64,
}

impl State {
    /// The state of an object of which a plugin is shown this excerpt; none: all of it.
    fn of(object: &Object, excerpt: Option<&str>) -> Self {
        let hash = |hash: &dyn Fn(&mut DefaultHasher)| {
            let mut hasher = DefaultHasher::new();
            hash(&mut hasher);
            hasher.finish()
        };
        let version = || hash(&|hasher| (&object.uid, &object.resource_version).hash(hasher));
        let Some(excerpt) = excerpt else { return Self { shown: version(), host: 0 } };
        // What somebody confirms is not looked at closely here: any change of such an object is news.
        let confirmation = object.text.contains(labels::ALLOW_REMOVAL).then_some(&object.resource_version);
        let host = hash(&|hasher| (&object.finalizers, status_text(object), confirmation).hash(hasher));
        Self { shown: hash(&|hasher| excerpt.hash(hasher)), host }
    }

    /// The state of an object for a plugin that is shown what is declared.
    pub fn shown_by(excerpts: &Excerpts, object: &Object) -> Self {
        Self::of(object, excerpts.of_object(object).as_deref())
    }
}

/// Names the plugin and what it is shown of the object's children.
fn others(digest: &str, observed: &Observed) -> u64 {
    let mut hasher = DefaultHasher::new();
    digest.hash(&mut hasher);
    for (child, excerpt) in observed.shown_children() {
        (&child.uid, excerpt.unwrap_or(&child.resource_version)).hash(&mut hasher);
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

    use super::{super::excerpt::Shown, *};

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
            excerpt: None,
            children: vec![(KindRef::new("v1", "ConfigMap"), object("b", child_version))],
            child_excerpts: Vec::new(),
            former: Vec::new(),
            kinds: BTreeMap::new(),
        }
    }

    #[test]
    fn holds_until_an_input_changes() {
        let before = Converged::new(Inputs::of("d", &observed("1", "1")), &Recorded::default());
        let holds = |digest, observed: Observed| {
            before.as_ref().is_some_and(|before| before.still_holds(Inputs::of(digest, &observed), &NoLookups))
        };
        assert!(holds("d", observed("1", "1")));
        assert!(!holds("another version", observed("1", "1")));
        assert!(!holds("d", observed("2", "1")));
        assert!(!holds("d", observed("1", "2")));
        assert!(!holds("d", Observed { children: Vec::new(), ..observed("1", "1") }));
    }

    #[test]
    fn of_a_child_only_what_is_shown_is_an_input() {
        let inputs = |shown: &str, version: &str| {
            let child_excerpts = vec![Shown::Part(shown.to_owned())];
            Inputs::of("d", &Observed { child_excerpts, ..observed("1", version) })
        };
        let before = Converged::new(inputs("same", "1"), &Recorded::default());
        let now = |inputs: Inputs| {
            before.clone().map(|before| (before.still_holds(inputs, &NoLookups), before.has_same_children(inputs)))
        };
        assert_eq!(now(inputs("same", "1")), Some((true, true)));
        assert_eq!(now(inputs("same", "2")), Some((true, false)), "the host looks at it");
        assert_eq!(now(inputs("other", "2")), Some((false, false)));
        let looked = before.clone().map(|before| before.with_children(inputs("same", "2")));
        assert!(looked.is_some_and(|looked| looked.has_same_children(inputs("same", "2"))));
    }

    #[test]
    fn only_what_is_shown_and_what_the_host_goes_by_is_an_input() {
        let shown = |text: &str, resource_version: &str, finalizers: &[&str]| {
            let finalizers = finalizers.iter().copied().map(Into::into).collect();
            let object = Object { resource_version: resource_version.into(), finalizers, ..Object::sample("ns", "a") };
            let object = Arc::new(Object { text: text.into(), ..object });
            Observed { object, excerpt: Some(text.chars().take(1).collect()), ..observed("1", "1") }
        };
        let (old, reported) = (r#"{"status":1}"#, r#"{"status":2}"#);
        let confirmed = format!(r#"{{"status":1,"{}":1}}"#, labels::ALLOW_REMOVAL);
        let before = Converged::new(Inputs::of("d", &shown(old, "1", &[])), &Recorded::default());
        for (now, expected) in [
            (shown(old, "2", &[]), true),
            (shown(r#"{"touched":1,"status":1}"#, "2", &[]), true),
            (shown(reported, "2", &[]), false),
            (shown(&confirmed, "2", &[]), false),
            (shown(old, "2", &["a/b"]), false),
            (shown("7", "2", &[]), false),
        ] {
            let holds = before.as_ref().is_some_and(|before| before.still_holds(Inputs::of("d", &now), &NoLookups));
            assert_eq!(holds, expected, "{now:?}");
        }
        let after = |now: &Observed| State::of(&now.object, now.excerpt.as_deref());
        let now = shown(reported, "2", &[]);
        let written = before.clone().and_then(|before| before.reported(after(&now)));
        assert!(written.is_some_and(|written| written.still_holds(Inputs::of("d", &now), &NoLookups)));
        assert!(before.and_then(|before| before.reported(after(&shown("7", "2", &[])))).is_none());
        let all = Converged::new(Inputs::of("d", &observed("1", "1")), &Recorded::default());
        assert!(all.and_then(|all| all.reported(after(&observed("2", "1")))).is_none(), "the status is shown, too");
    }

    #[test]
    fn lookups_are_asked_again_and_the_clock_is_never_the_same() {
        let get = Query::Get { kind: KindRef::new("v1", "Secret"), namespace: None, name: "s".to_owned() };
        let given = ask_again(&get, &Answers("one"));
        let recorded = Recorded { lookups: vec![(get, given)], ..Recorded::default() };
        let before = Converged::new(Inputs::of("d", &observed("1", "1")), &recorded);
        let holds = |answer| {
            before
                .as_ref()
                .is_some_and(|before| before.still_holds(Inputs::of("d", &observed("1", "1")), &Answers(answer)))
        };
        assert!(holds("one") && !holds("two"));
        let clock = Recorded { clock_read: true, ..Recorded::default() };
        assert!(Converged::new(Inputs::of("d", &observed("1", "1")), &clock).is_none());
    }
}
