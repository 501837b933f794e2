//! The plugin's last answer for an object: what of it can be reused, and what invalidates each part. Pure.
//!
//! # Flow
//!
//! A call creates a [`LastAnswer`]. The later stages add to it that the children are in sync and that the answer was reported. The
//! next reconcile asks it whether there is anything to do at all.
//!
//! | part | saves | is invalidated by |
//! |---|---|---|
//! | inputs, lookups | the call | another input; a plugin that reads the clock |
//! | response | the call in the next round | the end of the reconcile, to save memory |
//! | children in sync | check, plan and apply | another answer; a child that differs from it |
//! | reported | the whole reconcile | a status that does not show it |
//!
//! # Guarantees
//!
//! It is one value, with the object's state as its only owner, and the next call replaces it as a whole. So no two parts of it can
//! belong to different answers.
//!
//! # Caveats
//!
//! To lose any part costs a call or a comparison, never correctness.

use std::{collections::BTreeSet, sync::Arc};

use pilothouse_engine::{AnsweredLookup, Fingerprint, Lookups, Recorded, contract::Response};

use super::{
    in_sync::{AnswerId, ChildrenInSync, children_state},
    inputs::{Inputs, ObjectState},
};
use crate::pipeline::observe::Observed;

/// The last answer for an object.
#[derive(Clone, Debug)]
pub struct LastAnswer {
    inputs: Inputs,
    /// The plugin's lookups, with their results.
    lookups: Vec<AnsweredLookup>,
    /// Whether the plugin read the clock, so that the same inputs may lead to another answer later.
    reads_clock: bool,
    /// The children to delete at once, by their places in the request.
    forced_deletions: BTreeSet<u32>,
    /// The answer itself, until the end of the reconcile that asked for it.
    response: Option<Arc<Response>>,
    /// The fingerprint of its children; none if it leaves the children as they are.
    children: Option<AnswerId>,
    in_sync: Option<ChildrenInSync>,
    /// The children at the time of the report. They may differ from the answer, for example while deletes are held back.
    children_when_reported: Option<Fingerprint>,
    /// Which children were not ready at the time of the report, if the report depends on that.
    unready_when_reported: Option<Fingerprint>,
    /// Whether the status shows it, and its verdict asks for no retry.
    is_reported: bool,
}

impl LastAnswer {
    /// The answer to a call with these inputs.
    pub fn new(inputs: Inputs, response: Arc<Response>, recorded: Recorded, children: Option<AnswerId>) -> Self {
        let Recorded { mut lookups, clock_read, denied: _, forced_deletions } = recorded;
        let response = Some(response);
        // They stay as long as the object.
        lookups.shrink_to_fit();
        Self {
            inputs,
            lookups,
            reads_clock: clock_read,
            forced_deletions,
            response,
            children,
            in_sync: None,
            children_when_reported: None,
            unready_when_reported: None,
            is_reported: false,
        }
    }

    /// The children to delete at once, by their places in the request.
    pub fn forced_deletions(&self) -> &BTreeSet<u32> {
        &self.forced_deletions
    }

    /// Takes over which children are in sync from the previous answer, if both return the same children.
    pub fn inheriting(self, before: Option<Self>) -> Self {
        let in_sync = before.and_then(|before| before.in_sync);
        // Most new answers differ in their status only, and then no child needs to be compared again.
        let in_sync = in_sync.filter(|in_sync| self.children.is_some_and(|children| in_sync.is_of(children)));
        Self { in_sync, ..self }
    }

    /// The answer itself, if a call with these inputs would return it again.
    pub fn response_for(&self, inputs: Inputs, lookups: &dyn Lookups) -> Option<Arc<Response>> {
        self.response.clone().filter(|_| self.is_answer_to(inputs, lookups))
    }

    /// Whether a call with these inputs would return the same answer. Repeats the lookups, which costs no request.
    fn is_answer_to(&self, inputs: Inputs, lookups: &dyn Lookups) -> bool {
        let same = |lookup: &AnsweredLookup| lookups.fingerprint(&lookup.query, lookup.limit) == lookup.answer;
        !self.reads_clock && self.inputs == inputs && self.lookups.iter().all(same)
    }

    /// Whether there is nothing to do: the inputs are the same, the status shows the answer, and the children are unchanged. Those that
    /// are `left` may become ready or not.
    pub fn is_settled(
        &self,
        inputs: Inputs,
        lookups: &dyn Lookups,
        observed: &Observed,
        left: &BTreeSet<Box<str>>,
    ) -> bool {
        let is_as_seen = match (&self.in_sync, self.children) {
            (Some(in_sync), _) => in_sync.is_as_seen(observed),
            // Children that could not be written yet: what was reported is true as long as they are what they were at the time.
            (None, Some(_)) => self.children_when_reported == Some(children_state(observed)),
            (None, None) => true,
        };
        // What a plugin does not read of its children is no input, but they may be ready by now.
        let is_as_ready =
            self.unready_when_reported.is_none_or(|unready| unready == Fingerprint::of(&observed.unready(left)));
        self.is_reported && is_as_seen && is_as_ready && self.is_answer_to(inputs, lookups)
    }

    /// Compares the children with those that were in sync. If one changed, they all are planned again.
    pub fn refresh(&mut self, observed: &Observed) {
        self.in_sync = self.in_sync.take().and_then(|in_sync| in_sync.refreshed(observed));
    }

    /// Whether the children were in sync at the last [`LastAnswer::refresh`].
    pub fn has_children_in_sync(&self) -> bool {
        self.in_sync.is_some()
    }

    /// The fingerprint of the answer's children; none if it leaves the children as they are.
    pub fn children(&self) -> Option<AnswerId> {
        self.children
    }

    /// Records that the children are in sync with the answer.
    pub fn set_in_sync(&mut self, in_sync: ChildrenInSync) {
        self.in_sync = Some(in_sync);
    }

    /// Records that the status shows the answer and that it asks for no retry. `after` is the object after the status write; none
    /// if nothing was written. If the plugin sees something new in it, such as its own status, it must be called again.
    pub fn mark_reported(&mut self, observed: &Observed, after: Option<ObjectState>) {
        self.children_when_reported = Some(children_state(observed));
        match after.map(|after| self.inputs.with_object(after)) {
            None => self.is_reported = true,
            Some(Some(inputs)) => (self.inputs, self.is_reported) = (inputs, true),
            Some(None) => self.is_reported = false,
        }
    }

    /// Records that the report depends on which children are not ready.
    pub fn depends_on_readiness(&mut self, unready: &[String]) {
        self.unready_when_reported = Some(Fingerprint::of(unready));
    }

    /// Records that the status does not show the answer, or that its verdict asks for a retry.
    pub fn mark_unreported(&mut self) {
        self.is_reported = false;
    }

    /// Drops the answer itself, at the end of the reconcile. Its fingerprints are enough from then on.
    pub fn drop_response(&mut self) {
        self.response = None;
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use pilothouse_engine::{
        Answer, ContractSeries, NoLookups, Query, Scope,
        contract::{Child, KindRef, LookupError, Verdict},
    };

    use super::*;
    use crate::{
        labels,
        object::Object,
        pipeline::{call::in_sync::MetadataKeys, observe::LiveChild},
        plugin::Called,
        projection::Projected,
        readiness::ReadinessRules,
    };

    struct Answers(&'static str);

    impl Lookups for Answers {
        fn answer(&self, _: &Query, _: usize) -> Result<Answer, LookupError> {
            Ok(Answer::of_texts(vec![self.0.to_owned()]))
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
            namespaces: None,
            readiness: ReadinessRules::default(),
        }
    }

    fn called<'a>(digest: &'a str, config: &'a str) -> Called<'a> {
        Called { digest, contract: ContractSeries::V0_2, config }
    }

    fn inputs(observed: &Observed) -> Inputs {
        Inputs::of(called("d", "null"), observed, &[])
    }

    fn id(text: &str) -> AnswerId {
        AnswerId::of("d", &observed("1", "1"), &[Child::applied(text.to_owned())])
    }

    fn answer(observed: &Observed, recorded: Recorded, children: Option<AnswerId>) -> LastAnswer {
        let response = Arc::new(Response::verdict(Verdict::Done));
        LastAnswer::new(inputs(observed), response, recorded, children)
    }

    /// An answer that was carried out and reported, with no change since.
    fn settled(observed: &Observed) -> LastAnswer {
        let mut answer = answer(observed, Recorded::default(), Some(id("x")));
        answer.set_in_sync(ChildrenInSync::compared(id("x"), MetadataKeys::of([]), observed));
        answer.mark_reported(observed, None);
        answer
    }

    #[test]
    fn an_answer_is_settled_until_an_input_changes() {
        let before = settled(&observed("1", "1"));
        let is_settled = |digest, config, now: &Observed| {
            before.is_settled(Inputs::of(called(digest, config), now, &[]), &NoLookups, now, &BTreeSet::new())
        };
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
    fn children_are_checked_again_once_a_namespace_of_theirs_is_not_served() {
        let served = |namespaces: &[&str]| {
            let namespaces = namespaces.iter().copied().map(Arc::from).collect();
            Observed { namespaces: Some(namespaces), ..observed("1", "1") }
        };
        let children = [Child::applied("x".to_owned())];
        let id = |now: &Observed| AnswerId::of("d", now, &children);
        assert!(id(&served(&["ns"])) == id(&served(&["ns", "other"])), "no child is in the other one");
        assert!(id(&served(&["ns"])) != id(&served(&["other"])), "the same answer is refused now");
    }

    #[test]
    fn an_answer_that_was_not_reported_is_not_settled() {
        let now = observed("1", "1");
        let mut before = settled(&now);
        before.mark_unreported();
        assert!(!before.is_settled(inputs(&now), &NoLookups, &now, &BTreeSet::new()));
        assert!(before.response_for(inputs(&now), &NoLookups).is_some(), "but the plugin need not be asked");
        before.drop_response();
        assert!(before.response_for(inputs(&now), &NoLookups).is_none());
    }

    /// An input changes from A to B and back to A, while the status of B is postponed. The children of B must not count as those of
    /// A.
    #[test]
    fn the_next_answer_replaces_the_previous_one_as_a_whole() {
        let a = observed("1", "1");
        let b = answer(&observed("2", "1"), Recorded::default(), Some(id("y"))).inheriting(Some(settled(&a)));
        assert!(!b.has_children_in_sync(), "it returns other children");
        assert!(!b.is_settled(inputs(&a), &NoLookups, &a, &BTreeSet::new()));
        let same = answer(&observed("2", "1"), Recorded::default(), Some(id("x"))).inheriting(Some(settled(&a)));
        assert!(same.has_children_in_sync(), "it returns the same children");
        assert!(
            !same.is_settled(inputs(&observed("2", "1")), &NoLookups, &a, &BTreeSet::new()),
            "it was not reported yet"
        );
    }

    #[test]
    fn only_the_projection_of_a_child_is_an_input_but_all_of_it_is_compared() {
        let now = |shown: &str, version: &str| Observed {
            children: vec![child(version, Projected::Part(shown.to_owned()))],
            ..observed("1", "1")
        };
        let before = now("same", "1");
        let mut answer = answer(&before, Recorded::default(), Some(id("x")));
        answer.set_in_sync(ChildrenInSync::compared(id("x"), MetadataKeys::of([]), &before));
        answer.mark_reported(&before, None);
        let (touched, other) = (now("same", "2"), now("other", "2"));
        assert!(
            !answer.is_settled(inputs(&touched), &NoLookups, &touched, &BTreeSet::new()),
            "the change was not compared yet"
        );
        answer.refresh(&touched);
        assert!(answer.is_settled(inputs(&touched), &NoLookups, &touched, &BTreeSet::new()));
        assert!(!answer.is_settled(inputs(&other), &NoLookups, &other, &BTreeSet::new()));
    }

    #[test]
    fn only_the_projection_and_the_fields_that_the_host_reads_are_inputs() {
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
            assert_eq!(before.response_for(inputs(&now), &NoLookups).is_some(), expected, "{now:?}");
        }
    }

    #[test]
    fn an_answer_is_invalid_if_a_lookup_changed_or_the_clock_was_read() {
        let now = observed("1", "1");
        let query = Query::by_name(KindRef::new("v1", "Secret"), Scope::OwnNamespace, "s");
        let given = Answers("one").fingerprint(&query, 1 << 20);
        let recorded =
            Recorded { lookups: vec![AnsweredLookup { query, limit: 1 << 20, answer: given }], ..Recorded::default() };
        let before = answer(&now, recorded, None);
        let holds = |answer| before.response_for(inputs(&now), &Answers(answer)).is_some();
        assert!(holds("one") && !holds("two"));
        let clock = Recorded { clock_read: true, ..Recorded::default() };
        assert!(answer(&now, clock, None).response_for(inputs(&now), &NoLookups).is_none());
    }
}
