//! What is remembered of the plugin's last answer for an object, and all that makes it invalid. It is one value with one owner
//! (the object's state), replaced as a whole by the next call, so that no two parts of it can speak of different answers. Pure.
//!
//! | part | is good for | what makes it invalid |
//! |---|---|---|
//! | inputs, lookups | leaving the call out | another input; a plugin that read the clock |
//! | response | not asking again in the next round | the end of the reconcile (to save memory) |
//! | children in sync, or as they were seen | leaving check, plan and apply out | another answer; a child that differs from it |
//! | reported | leaving the whole reconcile out | a status that is not written as it says |
//!
//! Forgetting any of it costs a call or a comparison, and never correctness.

use std::sync::Arc;

use pilothouse_engine::{AnsweredLookup, Fingerprint, Lookups, Recorded, contract::Response};

use super::{
    in_sync::{AnswerId, ChildrenInSync, states},
    inputs::{Inputs, ObjectState},
};
use crate::pipeline::observe::Observed;

/// The last answer for an object.
#[derive(Clone, Debug)]
pub struct LastAnswer {
    inputs: Inputs,
    /// What was looked up for it, and what was answered.
    lookups: Vec<AnsweredLookup>,
    /// The same inputs may have another answer later.
    reads_clock: bool,
    /// The answer itself, while the reconcile is under way that asked for it.
    response: Option<Arc<Response>>,
    /// Names its children; none where it leaves them as they are.
    children: Option<AnswerId>,
    in_sync: Option<ChildrenInSync>,
    /// The children when it was reported, in sync or not: it was not carried out where deletes are held back.
    seen: Option<Fingerprint>,
    /// It was carried out and told, and its verdict asks for nothing more.
    is_reported: bool,
}

impl LastAnswer {
    /// An answer that was just given to these inputs.
    pub fn new(inputs: Inputs, response: Arc<Response>, recorded: Recorded, children: Option<AnswerId>) -> Self {
        let Recorded { lookups, clock_read, denied: _ } = recorded;
        let response = Some(response);
        Self {
            inputs,
            lookups,
            reads_clock: clock_read,
            response,
            children,
            in_sync: None,
            seen: None,
            is_reported: false,
        }
    }

    /// The same, with what the answer before it knows of the children, where both want the same ones.
    pub fn after(self, before: Option<Self>) -> Self {
        let in_sync = before.and_then(|before| before.in_sync);
        let in_sync = in_sync.filter(|in_sync| self.children.is_some_and(|children| in_sync.is_of(children)));
        Self { in_sync, ..self }
    }

    /// The answer itself, if these inputs would get it again.
    pub fn response_to(&self, inputs: Inputs, lookups: &dyn Lookups) -> Option<Arc<Response>> {
        self.response.clone().filter(|_| self.is_answer_to(inputs, lookups))
    }

    /// Whether these inputs would get the same answer again.
    fn is_answer_to(&self, inputs: Inputs, lookups: &dyn Lookups) -> bool {
        let same = |lookup: &AnsweredLookup| lookup.query.ask(lookups) == lookup.answer;
        !self.reads_clock && self.inputs == inputs && self.lookups.iter().all(same)
    }

    /// Whether there is nothing to do: these inputs have this answer, it was told, and the children are in sync with it.
    pub fn is_settled(&self, inputs: Inputs, lookups: &dyn Lookups, observed: &Observed) -> bool {
        let is_as_seen = match (&self.in_sync, self.children) {
            (Some(in_sync), _) => in_sync.is_as_seen(observed),
            (None, Some(_)) => self.seen == Some(states(observed)),
            (None, None) => true,
        };
        self.is_reported && is_as_seen && self.is_answer_to(inputs, lookups)
    }

    /// Takes note of the children as they are now. Those that are no longer in sync are compared again.
    pub fn refresh(&mut self, observed: &Observed) {
        self.in_sync = self.in_sync.take().and_then(|in_sync| in_sync.refreshed(observed));
    }

    /// Whether the children were in sync when they were looked at last.
    pub fn has_children_in_sync(&self) -> bool {
        self.in_sync.is_some()
    }

    /// Names the answer's children; none where it leaves them as they are.
    pub fn children(&self) -> Option<AnswerId> {
        self.children
    }

    /// The children were found in sync with it, or were made so.
    pub fn put_in_sync(&mut self, in_sync: ChildrenInSync) {
        self.in_sync = Some(in_sync);
    }

    /// The status says what it says, and it asks for nothing more: the object is as it was observed, or `after` its status was
    /// written. A plugin that is shown something else then has to be asked about that.
    pub fn report(&mut self, observed: &Observed, after: Option<ObjectState>) {
        self.seen = Some(states(observed));
        match after.map(|after| self.inputs.with_object(after)) {
            None => self.is_reported = true,
            Some(Some(inputs)) => (self.inputs, self.is_reported) = (inputs, true),
            Some(None) => self.is_reported = false,
        }
    }

    /// The status does not say it, or its verdict asks for more.
    pub fn leave_unreported(&mut self) {
        self.is_reported = false;
    }

    /// The reconcile is over: the text of the answer is not needed any more.
    pub fn drop_response(&mut self) {
        self.response = None;
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use pilothouse_engine::{
        NoLookups, Query,
        contract::{Child, ImmutablePolicy, KindRef, LookupError, RemovalPolicy, Verdict},
    };

    use super::*;
    use crate::{
        labels,
        object::Object,
        pipeline::{call::in_sync::Marks, observe::LiveChild},
        plugin::projection::Projected,
    };

    struct Answers(&'static str);

    impl Lookups for Answers {
        fn get(&self, _: &KindRef, _: Option<&str>, _: &str) -> Result<Option<String>, LookupError> {
            Ok(Some(self.0.to_owned()))
        }
        fn select(&self, _: &KindRef, _: Option<&str>, _: &str) -> Result<Vec<String>, LookupError> {
            Ok(Vec::new())
        }
    }

    fn object(name: &str, version: &str) -> Object {
        Object { resource_version: version.into(), ..Object::sample("ns", name) }
    }

    fn child(version: &str, projection: Projected) -> LiveChild {
        LiveChild { kind: KindRef::new("v1", "ConfigMap"), object: Arc::new(object("b", version)), projection }
    }

    fn observed(object_version: &str, child_version: &str) -> Observed {
        Observed {
            kind: KindRef::new("example.com/v1", "Web"),
            object: Arc::new(object("a", object_version)),
            projection: None,
            children: vec![child(child_version, Projected::All)],
            former: Vec::new(),
            kinds: BTreeMap::new(),
            schema: None,
        }
    }

    fn inputs(observed: &Observed) -> Inputs {
        Inputs::of("d", "null", observed)
    }

    fn id(text: &str) -> AnswerId {
        let child = Child {
            object: text.to_owned(),
            on_immutable: ImmutablePolicy::Fail,
            on_removal: RemovalPolicy::Delete,
            unmanaged_fields: Vec::new(),
        };
        AnswerId::of("d", &observed("1", "1"), &[child])
    }

    fn answer(observed: &Observed, recorded: Recorded, children: Option<AnswerId>) -> LastAnswer {
        let response = Arc::new(Response::verdict(Verdict::Done));
        LastAnswer::new(inputs(observed), response, recorded, children)
    }

    /// An answer that was carried out and reported, and after which nothing changed.
    fn settled(observed: &Observed) -> LastAnswer {
        let mut answer = answer(observed, Recorded::default(), Some(id("x")));
        answer.put_in_sync(ChildrenInSync::compared(id("x"), Marks::of([]), observed));
        answer.report(observed, None);
        answer
    }

    #[test]
    fn it_is_settled_until_an_input_changes() {
        let before = settled(&observed("1", "1"));
        let is_settled =
            |digest, config, now: &Observed| before.is_settled(Inputs::of(digest, config, now), &NoLookups, now);
        let none = Observed { children: Vec::new(), ..observed("1", "1") };
        for (name, digest, config, now, expected) in [
            ("the same", "d", "null", observed("1", "1"), true),
            ("another version", "other", "null", observed("1", "1"), false),
            ("another configuration", "d", "{}", observed("1", "1"), false),
            ("another object", "d", "null", observed("2", "1"), false),
            ("another child", "d", "null", observed("1", "2"), false),
            ("no child", "d", "null", none, false),
        ] {
            assert_eq!(is_settled(digest, config, &now), expected, "{name}");
        }
    }

    #[test]
    fn an_answer_that_was_not_reported_is_not_settled() {
        let now = observed("1", "1");
        let mut before = settled(&now);
        before.leave_unreported();
        assert!(!before.is_settled(inputs(&now), &NoLookups, &now));
        assert!(before.response_to(inputs(&now), &NoLookups).is_some(), "but the plugin need not be asked");
        before.drop_response();
        assert!(before.response_to(inputs(&now), &NoLookups).is_none());
    }

    /// An input that goes from A to B and back to A, while the status of B is held back: what B wrote must not be taken for A's.
    #[test]
    fn the_next_answer_replaces_all_of_the_one_before() {
        let a = observed("1", "1");
        let b = answer(&observed("2", "1"), Recorded::default(), Some(id("y"))).after(Some(settled(&a)));
        assert!(!b.has_children_in_sync(), "it wants other children");
        assert!(!b.is_settled(inputs(&a), &NoLookups, &a));
        let same = answer(&observed("2", "1"), Recorded::default(), Some(id("x"))).after(Some(settled(&a)));
        assert!(same.has_children_in_sync(), "it wants the same children");
        assert!(!same.is_settled(inputs(&observed("2", "1")), &NoLookups, &a), "it was not reported yet");
    }

    #[test]
    fn of_a_child_only_what_is_shown_is_an_input_and_the_rest_is_compared() {
        let now = |shown: &str, version: &str| Observed {
            children: vec![child(version, Projected::Part(shown.to_owned()))],
            ..observed("1", "1")
        };
        let before = now("same", "1");
        let mut answer = answer(&before, Recorded::default(), Some(id("x")));
        answer.put_in_sync(ChildrenInSync::compared(id("x"), Marks::of([]), &before));
        answer.report(&before, None);
        let (touched, other) = (now("same", "2"), now("other", "2"));
        assert!(!answer.is_settled(inputs(&touched), &NoLookups, &touched), "nobody has looked at it");
        answer.refresh(&touched);
        assert!(answer.is_settled(inputs(&touched), &NoLookups, &touched));
        assert!(!answer.is_settled(inputs(&other), &NoLookups, &other));
    }

    #[test]
    fn only_what_is_shown_and_what_the_host_goes_by_is_an_input() {
        let shown = |text: &str, resource_version: &str, finalizers: &[&str]| {
            let finalizers = finalizers.iter().copied().map(Into::into).collect();
            let object = Object { resource_version: resource_version.into(), finalizers, ..Object::sample("ns", "a") };
            let object = Arc::new(Object { text: text.into(), ..object });
            Observed { object, projection: Some(text.chars().take(1).collect()), ..observed("1", "1") }
        };
        let (old, reported) = (r#"{"status":1}"#, r#"{"status":2}"#);
        let confirmed = format!(r#"{{"status":1,"{}":1}}"#, labels::ALLOW_REMOVAL);
        let before = answer(&shown(old, "1", &[]), Recorded::default(), None);
        for (now, expected) in [
            (shown(old, "2", &[]), true),
            (shown(r#"{"touched":1,"status":1}"#, "2", &[]), true),
            (shown(reported, "2", &[]), false),
            (shown(&confirmed, "2", &[]), false),
            (shown(old, "2", &["a/b"]), false),
            (shown("7", "2", &[]), false),
        ] {
            assert_eq!(before.response_to(inputs(&now), &NoLookups).is_some(), expected, "{now:?}");
        }
    }

    #[test]
    fn lookups_are_asked_again_and_the_clock_is_never_the_same() {
        let now = observed("1", "1");
        let query = Query::Get { kind: KindRef::new("v1", "Secret"), namespace: None, name: "s".to_owned() };
        let given = query.ask(&Answers("one"));
        let recorded = Recorded { lookups: vec![AnsweredLookup { query, answer: given }], ..Recorded::default() };
        let before = answer(&now, recorded, None);
        let holds = |answer| before.response_to(inputs(&now), &Answers(answer)).is_some();
        assert!(holds("one") && !holds("two"));
        let clock = Recorded { clock_read: true, ..Recorded::default() };
        assert!(answer(&now, clock, None).response_to(inputs(&now), &NoLookups).is_none());
    }
}
