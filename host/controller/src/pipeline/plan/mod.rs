//! Stage 5: compares the desired children with the live ones and plans the writes and deletes between them. Pure: takes no
//! client, and the same values always lead to the same plan.
//!
//! # Flow
//!
//! [`plan()`] goes through the desired children and plans a create, an update, a delete before a recreation, or nothing. Live
//! children that are not desired are deleted. `deletion_guard` then decides whether the deletes may be carried out.
//!
//! # Guarantees
//!
//! - An update is planned only if a desired field differs, or if the plugin returns something else than was applied last.
//! - Each write and each delete has its cause, which the log shows.
//!
//! # Caveats
//!
//! The comparison knows the API server's normalisation only as far as the kind's schema tells. A value that is normalised in
//! another way looks like drift once; an apply that does not change it shows that it is not, and `normalised.rs` remembers that.

pub mod deletion_guard;
pub mod diff;
mod forced;
mod handover;
mod list_repair;
pub mod masked;
mod normalised;
mod order;
mod recreation;
mod value_patch;

use std::{collections::BTreeSet, fmt, sync::Arc};

use pilothouse_engine::contract::{Handling, KindRef};
use serde_json::Value;

use self::{
    diff::{Difference, differences},
    handover::handover,
    list_repair::list_repair,
    order::{Order, Standing},
    value_patch::value_patch,
};
pub use self::{
    forced::forced,
    normalised::Normalised,
    recreation::{Recreation, Recreations},
};
use super::{
    applied_mark::{has_same_fields, is_same_body},
    check::DesiredChild,
    observe::{LiveChild, Observed},
};
use crate::{
    labels,
    object::{Object, annotation, describe},
    schema::Schema,
};

/// The UIDs of the children that stay although they are no longer desired: those that the plugin wanted to be kept.
pub fn left(desired: &[DesiredChild], observed: &Observed) -> BTreeSet<Box<str>> {
    let wanted: BTreeSet<_> = desired.iter().map(|child| (&child.kind, &child.name)).collect();
    let is_left = |child: &&LiveChild| child.object.is_kept() && !wanted.contains(&(&child.kind, &child.object.name));
    observed.children.iter().filter(is_left).map(|child| child.object.uid.clone()).collect()
}

/// The writes and deletes of one round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Creates and updates.
    pub writes: Vec<Write>,
    /// Deletes. They come after all writes, and only if those succeeded.
    pub deletes: Vec<Delete>,
    /// Desired children that are being deleted. They are created again once they are gone.
    pub awaited: Vec<String>,
    /// Why desired children are not written yet, or others not deleted: more must be current, or gone, first.
    pub waiting: Vec<String>,
    /// The last place in the order among the children that go.
    pub last_to_go: u32,
}

/// A create or an update.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// The child to apply.
    pub child: DesiredChild,
    /// The cause.
    pub cause: WriteCause,
    /// A merge patch before the apply, if somebody changed the key of a list element; see `list_repair.rs`.
    pub list_repair: Option<Value>,
    /// The live values of fields that are given up, to be applied first as another field manager; see `handover.rs`.
    pub handover: Option<Value>,
    /// The merge patch that does the same as the apply with less work, if there is one; see `value_patch.rs`.
    pub value_patch: Option<Value>,
}

/// Why a child is written.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteCause {
    /// It does not exist.
    Missing,
    /// The plugin returns something else than was applied last.
    Changed(LiveState),
    /// The plugin returns the same as was applied last, but somebody else changed the child.
    Drifted(LiveState),
}

/// A live child and its differences from the desired one.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveState {
    /// The live child.
    pub live: Arc<Object>,
    /// The differences; empty if the plugin only dropped a field, which then is not desired any more.
    pub differences: Vec<Difference>,
}

/// A delete.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    /// The child's kind.
    pub kind: KindRef,
    /// The live child.
    pub live: Arc<Object>,
    /// The cause.
    pub cause: DeleteCause,
}

/// Why a child is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteCause {
    /// The plugin no longer returns it.
    NotReturned,
    /// The plugin's manifest no longer declares its kind.
    KindNotDeclared,
    /// The plugin does not work on its object any more.
    NotSelected,
    /// Its object is being deleted, and its children go in an order.
    OwnerDeleted,
    /// An immutable field would change, and the plugin's policy is to recreate the child.
    Recreate,
    /// It is being deleted and does not go, and the plugin does not wait for it.
    Forced,
}

impl fmt::Display for DeleteCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotReturned => "no longer returned",
            Self::KindNotDeclared => "its kind is no longer declared",
            Self::NotSelected => "its object is no longer decorated",
            Self::OwnerDeleted => "its object is being deleted",
            Self::Recreate => "recreate: a field cannot change",
            Self::Forced => "it is being deleted and does not go",
        })
    }
}

impl fmt::Display for WriteCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Missing => "it does not exist",
            Self::Changed(_) => "the plugin returns something else",
            Self::Drifted(_) => "somebody else changed it",
        })
    }
}

impl Plan {
    /// Leaves out the deletes of children for which others must go first, and all deletes while a child still waits to be written:
    /// deletes come last. Not before the guard against mass deletion has seen all of them.
    pub fn hold_deletes(&mut self) {
        let (last, is_unwritten) = (self.last_to_go, !self.waiting.is_empty());
        if last == 0 && !is_unwritten {
            return;
        }
        let (now, later) = std::mem::take(&mut self.deletes).into_iter().partition(|delete| {
            // What is created anew is not among those that go.
            delete.cause == DeleteCause::Recreate || (!is_unwritten && delete.live.order() == last)
        });
        self.deletes = now;
        let later: Vec<Delete> = later;
        let first = if is_unwritten { "all others are written" } else { "the children that waited for it are gone" };
        let words = later.iter().map(|delete| {
            let child = describe(&delete.kind, &delete.live.name);
            format!("{child} goes once {first}")
        });
        self.waiting.extend(words);
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.deletes.is_empty()
    }
}

impl WriteCause {
    /// The live child; none if it is missing.
    pub fn live(&self) -> Option<&Arc<Object>> {
        match self {
            Self::Missing => None,
            Self::Changed(state) | Self::Drifted(state) => Some(&state.live),
        }
    }

    /// The fields that differ.
    pub fn differences(&self) -> &[Difference] {
        match self {
            Self::Missing => &[],
            Self::Changed(state) | Self::Drifted(state) => &state.differences,
        }
    }

    /// The message for the log. Users and tests rely on its wording.
    pub fn finding(&self, kind: &str) -> String {
        match self {
            Self::Missing => format!("Creating {kind}."),
            Self::Changed(state) if state.differences.is_empty() => format!("Updating {kind}."),
            Self::Changed(_) | Self::Drifted(_) => format!("Drift detected. Updating {kind}."),
        }
    }
}

/// The results of earlier plans for the same object.
#[derive(Clone, Copy, Debug)]
pub struct PlanHistory<'a> {
    /// Differences that no apply removes.
    pub normalised: &'a Normalised,
    /// Children that must be deleted and created again.
    pub recreations: &'a Recreations,
}

/// What is to be done about one desired child.
enum Step {
    Nothing(Standing),
    Await(String),
    Write(Box<Write>),
    Delete(Delete),
}

/// Plans the writes and deletes that make the live children equal to the desired ones.
pub fn plan(children: Vec<DesiredChild>, observed: &Observed, history: PlanHistory<'_>) -> Plan {
    let mut plan = surplus(&children, observed);
    let (live, mut order) = (observed.children_by_name(), Order::of(&children, &observed.readiness));
    for child in children {
        let live = live.get(&(&child.kind, &child.name)).copied();
        let obstacle = order.obstacle(&child);
        order.begin(&child);
        match (step(child, live, observed, history), obstacle) {
            (Step::Nothing(standing), _) => order.end(standing),
            (Step::Await(child), _) => plan.awaited.push(child),
            (Step::Write(_) | Step::Delete(_), Some(obstacle)) => plan.waiting.push(obstacle),
            (Step::Write(write), None) => plan.writes.push(*write),
            (Step::Delete(delete), None) => plan.deletes.push(delete),
        }
    }
    plan
}

fn step(child: DesiredChild, live: Option<&Arc<Object>>, observed: &Observed, history: PlanHistory<'_>) -> Step {
    let Some(live) = live else {
        return match child.handling {
            Handling::Apply | Handling::Create => Step::Write(create(child).into()),
            Handling::Keep => Step::Nothing(Standing::Absent),
        };
    };
    if observed.is_released(live) {
        return Step::Nothing(Standing::Live(live.clone()));
    }
    if live.deleting {
        return match child.handling {
            // An update would be accepted, but it would be lost when the object goes.
            Handling::Apply | Handling::Create => Step::Await(describe(&child.kind, &child.name)),
            Handling::Keep => Step::Nothing(Standing::Going),
        };
    }
    if child.handling != Handling::Apply {
        return Step::Nothing(Standing::Live(live.clone()));
    }
    if history.recreations.contains(&child, live) {
        return Step::Delete(Delete { kind: child.kind, live: live.clone(), cause: DeleteCause::Recreate });
    }
    let schema = observed.schema_of(&child.kind);
    match update(child, live, schema, history.normalised) {
        Some(write) => Step::Write(write.into()),
        None => Step::Nothing(Standing::Live(live.clone())),
    }
}

/// The plan for an object that its decorator does not work on any more: the deletes of all that it may delete.
pub fn withdrawal(observed: &Observed) -> Plan {
    let mut plan = surplus(&[], observed);
    plan.deletes.iter_mut().for_each(|delete| delete.cause = DeleteCause::NotSelected);
    plan
}

/// The plan for an object that is being deleted and whose children go in an order: the deletes of those that are next. Empty once garbage
/// collection may have the rest.
pub fn teardown(observed: &Observed) -> Plan {
    let mut plan = surplus(&[], observed);
    if plan.last_to_go == 0 {
        return Plan::default();
    }
    plan.deletes.iter_mut().for_each(|delete| delete.cause = DeleteCause::OwnerDeleted);
    plan.hold_deletes();
    plan
}

/// A plan with the deletes of live children that are not desired. Children to be kept and released ones stay.
fn surplus(children: &[DesiredChild], observed: &Observed) -> Plan {
    let wanted: BTreeSet<_> = children.iter().map(|child| (&child.kind, &child.name)).collect();
    let declared = observed.children.iter().map(|child| (child, DeleteCause::NotReturned));
    let former = observed.former.iter().map(|child| (child, DeleteCause::KindNotDeclared));
    let mut plan = Plan::default();
    for (child, cause) in declared.chain(former) {
        let live = &child.object;
        // Whether it stays is read from its annotations, which takes longest and therefore comes last.
        let is_surplus = !wanted.contains(&(&child.kind, &live.name));
        if is_surplus && !live.is_kept() && !observed.is_released(live) {
            plan.last_to_go = plan.last_to_go.max(live.order());
            if !live.deleting {
                plan.deletes.push(Delete { kind: child.kind.clone(), live: live.clone(), cause });
            }
        }
    }
    plan
}

fn create(child: DesiredChild) -> Write {
    Write { child, cause: WriteCause::Missing, list_repair: None, handover: None, value_patch: None }
}

/// The JSON pointer of the mark.
const MARK: &str = "/metadata/annotations/pilothouse.dev~1applied";

/// The update of a live child, if it needs one.
fn update(child: DesiredChild, live: &Arc<Object>, schema: Option<&Schema>, normalised: &Normalised) -> Option<Write> {
    // A text that is not JSON becomes null, which differs in all fields.
    let state = serde_json::from_str::<Value>(&live.text.read()).unwrap_or_default();
    let applied = annotation(&state, labels::APPLIED).unwrap_or_default();
    let is_same = is_same_body(applied, &child.digest);
    let mut differences = differences(&child.body, &state, schema);
    // Where the body is another one, the mark is too, which is of no use to the readers of the log; the mark of the same body may have
    // another outline, or none, which is no drift.
    differences.retain(|found| found.path != MARK);
    // Another digest is a cause even without a difference: a field that the plugin no longer returns is no desired field, and only
    // an apply removes it (decision 1).
    let cause = if !is_same {
        WriteCause::Changed(LiveState { live: live.clone(), differences })
    } else if !differences.is_empty() && !normalised.holds(&child, live, &differences) {
        WriteCause::Drifted(LiveState { live: live.clone(), differences })
    } else {
        return None;
    };
    let handover = handover(&child, &state);
    // An element whose key somebody changed is missing for the comparison, or its list is another one.
    let may_need_repair = cause.differences().iter().any(|found| found.live.is_null() || found.live.is_array());
    // What was written last is there with other values, and nothing of it has to go.
    let keeps_fields = matches!(cause, WriteCause::Drifted(_)) || has_same_fields(applied, &child.digest);
    let by_values = schema.filter(|_| keeps_fields && handover.is_none() && live.controller.is_some());
    let value_patch = by_values.and_then(|schema| value_patch(&child.body, &state, schema));
    let list_repair = may_need_repair.then(|| list_repair(&child.body, state, schema)).flatten();
    Some(Write { child, cause, list_repair, handover, value_patch })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pilothouse_engine::contract::ImmutablePolicy;
    use serde_json::json;

    use super::*;
    use crate::{
        object::{ControllerRef, ObjectRef},
        pipeline::observe::LiveChild,
        projection::Projected,
        readiness::ReadinessRules,
        schema::samples,
    };

    fn kind() -> KindRef {
        KindRef::new("v1", "ConfigMap")
    }

    fn child(name: &str, data: &str, digest: &str) -> DesiredChild {
        DesiredChild {
            kind: kind(),
            name: ObjectRef::new("ns", name),
            body: json!({"data": {"key": data}}),
            digest: digest.to_owned(),
            handling: Handling::Apply,
            after: Vec::new(),
            order: 0,
            on_immutable: ImmutablePolicy::Fail,
            unmanaged: Vec::new(),
        }
    }

    fn live(name: &str, data: &str, digest: &str) -> Object {
        let text = json!({"data": {"key": data}, "metadata": {"annotations": {labels::APPLIED: digest}}});
        Object { text: text.to_string().into(), ..Object::sample("ns", name) }
    }

    fn observed(children: Vec<Object>) -> Observed {
        Observed {
            kind: KindRef::new("example.com/v1", "Web"),
            object: Arc::new(live("shop", "", "")),
            projection: None,
            children: children.into_iter().map(live_child).collect(),
            former: Vec::new(),
            kinds: BTreeMap::new(),
            schema: None,
            namespaces: None,
            readiness: ReadinessRules::default(),
        }
    }

    fn live_child(object: Object) -> LiveChild {
        LiveChild { kind: kind(), object: Arc::new(object), projection: Projected::All }
    }

    /// The plan without a history.
    fn first_plan(wanted: Vec<DesiredChild>, observed: &Observed) -> Plan {
        let (normalised, recreations) = (&Normalised::default(), &Recreations::default());
        plan(wanted, observed, PlanHistory { normalised, recreations })
    }

    /// The plan as text: verb and child.
    fn planned(wanted: Vec<DesiredChild>, there: Vec<Object>) -> Vec<String> {
        let plan = first_plan(wanted, &observed(there));
        let writes = plan.writes.iter().map(|write| {
            let verb = match write.cause {
                WriteCause::Missing => "create",
                WriteCause::Changed(_) => "change",
                WriteCause::Drifted(_) => "repair",
            };
            format!("{verb} {}", write.child.name.name)
        });
        let deletes = plan.deletes.iter().map(|delete| format!("delete {}", delete.live.name.name));
        let awaited = plan.awaited.iter().map(|child| format!("await {child}"));
        writes.chain(deletes).chain(awaited).chain(plan.waiting.iter().cloned()).collect()
    }

    #[test]
    fn plans_what_differs_and_nothing_else() {
        let deleting = Object { deleting: true, ..live("a", "1", "f") };
        let kept = Object {
            text: json!({"metadata": {"annotations": {labels::ON_REMOVAL: labels::KEEP}}}).to_string().into(),
            ..live("b", "1", "f")
        };
        let cases = [
            ("missing", vec![child("a", "1", "f")], vec![], vec!["create a"]),
            ("the same", vec![child("a", "1", "f")], vec![live("a", "1", "f")], vec![]),
            ("changed by the plugin", vec![child("a", "2", "g")], vec![live("a", "1", "f")], vec!["change a"]),
            ("a field dropped", vec![child("a", "1", "g")], vec![live("a", "1", "f")], vec!["change a"]),
            ("changed by somebody", vec![child("a", "1", "f")], vec![live("a", "9", "f")], vec!["repair a"]),
            ("no longer wanted", vec![], vec![live("a", "1", "f")], vec!["delete a"]),
            ("being deleted", vec![child("a", "1", "f")], vec![deleting.clone()], vec!["await ConfigMap 'a'"]),
            ("being deleted and unwanted", vec![], vec![deleting], vec![]),
            ("kept", vec![], vec![kept], vec![]),
        ];
        for (name, wanted, there, expected) in cases {
            assert_eq!(planned(wanted, there), expected, "{name}");
        }
    }

    #[test]
    fn the_mark_of_the_same_body_is_no_drift() {
        let wanted = |mark: &str| vec![child("a", "1", mark)];
        for mark in ["f", "f-a", "f-b"] {
            assert_eq!(planned(wanted("f-a"), vec![live("a", "1", mark)]), [""; 0], "{mark}");
            assert_eq!(planned(wanted("f-a"), vec![live("a", "9", mark)]), ["repair a"], "{mark}");
            assert_eq!(planned(wanted("g-a"), vec![live("a", "1", mark)]), ["change a"], "{mark}");
        }
    }

    #[test]
    fn values_alone_are_patched_where_no_field_has_to_go() {
        let owner = ControllerRef {
            api_version: "example.com/v1".into(),
            kind: "Web".into(),
            name: "shop".into(),
            uid: "u".into(),
        };
        let schema = samples::schema("apps/v1", "Deployment");
        let patch = |live: Object, mark: &str, schema: Option<&Schema>| {
            let wanted = DesiredChild { body: json!({"spec": {"replicas": 2}}), ..child("a", "", mark) };
            update(wanted, &Arc::new(live), schema, &Normalised::default()).and_then(|write| write.value_patch)
        };
        let there = |mark: &str, controller: Option<ControllerRef>| {
            let text = json!({"spec": {"replicas": 1}, "metadata": {"annotations": {labels::APPLIED: mark}}});
            Object { text: text.to_string().into(), controller, ..live("a", "", "") }
        };
        let ours = |mark: &str| there(mark, Some(owner.clone()));
        let values = Some(json!({"spec": {"replicas": 2}}));
        for (what, live, mark, schema, expected) in [
            ("another value", ours("f-a"), "g-a", Some(&schema), &values),
            ("a repair", ours("f-a"), "f-a", Some(&schema), &values),
            ("a repair of what an earlier host wrote", ours("f"), "f-a", Some(&schema), &values),
            ("another field", ours("f-b"), "g-a", Some(&schema), &None),
            ("nobody knows which fields", ours("f"), "g-a", Some(&schema), &None),
            ("an orphan", there("f-a", None), "g-a", Some(&schema), &None),
            ("no schema", ours("f-a"), "g-a", None, &None),
        ] {
            assert_eq!(&patch(live, mark, schema), expected, "{what}");
        }
    }

    #[test]
    fn a_child_that_is_created_only_or_kept_is_not_changed() {
        let with = |handling, name: &str| DesiredChild { handling, ..child(name, "2", "g") };
        let (create, keep) = (|| with(Handling::Create, "a"), || with(Handling::Keep, "a"));
        let there = || live("a", "1", "f");
        let deleting = || Object { deleting: true, ..there() };
        for (name, wanted, there, expected) in [
            ("created only, missing", create(), vec![], vec!["create a"]),
            ("created only, there", create(), vec![there()], vec![]),
            ("created only, being deleted", create(), vec![deleting()], vec!["await ConfigMap 'a'"]),
            ("kept, missing", keep(), vec![], vec![]),
            ("kept, there", keep(), vec![there()], vec![]),
            ("kept, being deleted", keep(), vec![deleting()], vec![]),
        ] {
            assert_eq!(planned(vec![wanted], there), expected, "{name}");
        }
    }

    #[test]
    fn a_child_is_written_once_those_that_it_waits_for_are_current() {
        let after = |places: &[usize], child: DesiredChild| DesiredChild { after: places.to_vec(), ..child };
        let chain = || vec![child("a", "1", "f"), after(&[0], child("b", "1", "f")), after(&[1], child("c", "1", "f"))];
        let there = |name: &str| live(name, "1", "f");
        let unready = |name: &str| {
            let text = json!({
                "data": {"key": "1"}, "metadata": {"annotations": {labels::APPLIED: "f"}},
                "status": {"conditions": [{"type": "Ready", "status": "False", "message": "not yet"}]},
            });
            Object { text: text.to_string().into(), ..there(name) }
        };
        let waits = |child: &str, awaited: &str, why: &str| {
            format!("ConfigMap '{child}' waits for ConfigMap '{awaited}': {why}")
        };
        let unwritten = "it is not written yet";
        for (name, there, expected) in [
            (
                "none is there",
                vec![],
                vec!["create a".to_owned(), waits("b", "a", unwritten), waits("c", "b", unwritten)],
            ),
            ("the first is there", vec![there("a")], vec!["create b".to_owned(), waits("c", "b", unwritten)]),
            (
                "the first is not ready",
                vec![unready("a")],
                vec![waits("b", "a", "not yet"), waits("c", "b", unwritten)],
            ),
            ("the first is missing", vec![there("b")], vec!["create a".to_owned(), "create c".to_owned()]),
            (
                "a change",
                vec![unready("a"), live("b", "9", "f")],
                vec![waits("b", "a", "not yet"), waits("c", "b", unwritten)],
            ),
            ("all are there", vec![unready("a"), there("b"), there("c")], vec![]),
        ] {
            assert_eq!(planned(chain(), there), expected, "{name}");
        }
    }

    #[test]
    fn what_is_kept_and_no_longer_wanted_is_left() {
        let kept = |name: &str| Object {
            uid: name.into(),
            text: json!({"metadata": {"annotations": {labels::ON_REMOVAL: labels::KEEP}}}).to_string().into(),
            ..live(name, "1", "f")
        };
        let there = observed(vec![kept("wanted"), kept("left"), live("other", "1", "f")]);
        let found = left(&[child("wanted", "1", "f")], &there);
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["left".into()]);
    }

    #[test]
    fn children_in_order_go_in_the_reverse_order() {
        let placed = |name: &str, order: u32| {
            let annotations = json!({labels::APPLIED: "f", labels::ORDER: order.to_string()});
            Object {
                text: json!({"metadata": {"annotations": annotations}}).to_string().into(),
                ..live(name, "1", "f")
            }
        };
        let going = |name: &str, order: u32| Object { deleting: true, ..placed(name, order) };
        let deleted = |there: Vec<Object>| {
            let observed = observed(there);
            let (normalised, recreations) = (&Normalised::default(), &Recreations::default());
            let mut plan = plan(Vec::new(), &observed, PlanHistory { normalised, recreations });
            plan.hold_deletes();
            let names = |plan: &Plan| plan.deletes.iter().map(|it| it.live.name.name.to_string()).collect::<Vec<_>>();
            let (now, teardown) = (names(&plan), teardown(&observed));
            (now, plan.waiting.len(), names(&teardown))
        };
        let of = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        for (name, there, now, waiting, teardown) in [
            ("a chain", vec![live("a", "1", "f"), placed("b", 1), placed("c", 2)], of(&["c"]), 2, of(&["c"])),
            ("the last is on its way", vec![live("a", "1", "f"), placed("b", 1), going("c", 2)], of(&[]), 2, of(&[])),
            (
                "the last is gone",
                vec![live("a", "1", "f"), placed("b", 1), placed("x", 1)],
                of(&["b", "x"]),
                1,
                of(&["b", "x"]),
            ),
            (
                "only those that wait for none",
                vec![live("a", "1", "f"), live("b", "1", "f")],
                of(&["a", "b"]),
                0,
                of(&[]),
            ),
        ] {
            assert_eq!(deleted(there), (now, waiting, teardown), "{name}");
        }
    }

    #[test]
    fn released_children_of_a_deleted_object_are_left_alone() {
        let owner = ControllerRef {
            api_version: "example.com/v1".into(),
            kind: "Web".into(),
            name: "shop".into(),
            uid: "u".into(),
        };
        let ours = Object { controller: Some(owner), ..live("ours", "1", "f") };
        let mut observed = observed(vec![live("released", "1", "f"), ours]);
        observed.object = Arc::new(Object { deleting: true, ..live("shop", "", "") });
        let names = |wanted: Vec<DesiredChild>| {
            let plan = first_plan(wanted, &observed);
            let writes = plan.writes.iter().map(|write| write.child.name.name.to_string());
            writes.chain(plan.deletes.iter().map(|delete| delete.live.name.name.to_string())).collect::<Vec<_>>()
        };
        assert_eq!(names(vec![child("released", "2", "g"), child("ours", "2", "g")]), ["ours"]);
        assert_eq!(names(vec![]), ["ours"]);
        assert_eq!(observed.own_children().count(), 1, "the plugin does not see it");
    }

    #[test]
    fn a_difference_that_an_apply_did_not_remove_is_no_drift_until_it_changes() {
        let (wanted, there) = (child("a", "1000m", "f"), live("a", "1", "f"));
        let found = differences(&wanted.body, &serde_json::from_str(&there.text.read()).unwrap_or_default(), None);
        let mut normalised = Normalised::default();
        normalised.remember(&wanted, &there, &found);
        let history = PlanHistory { normalised: &normalised, recreations: &Recreations::default() };
        let planned = |there: Object| plan(vec![wanted.clone()], &observed(vec![there]), history).writes.len();
        assert_eq!(planned(there.clone()), 0);
        assert_eq!(planned(live("a", "2", "f")), 1);
        normalised.keep_only(&[live_child(there.clone())]);
        assert!(normalised.holds(&wanted, &there, &found), "it is still there");
        normalised.keep_only(&[live_child(Object { uid: "another".into(), ..there.clone() })]);
        assert!(!normalised.holds(&wanted, &there, &found), "it is gone");
    }

    #[test]
    fn a_child_with_a_changed_immutable_field_is_deleted_first() {
        let (wanted, there) = (child("a", "2", "g"), live("a", "1", "f"));
        let recreations = Recreations::of([Recreation::of(&wanted, &there)]);
        let history = PlanHistory { normalised: &Normalised::default(), recreations: &recreations };
        let plan = plan(vec![wanted], &observed(vec![there]), history);
        assert_eq!(plan.deletes.iter().map(|delete| delete.cause).collect::<Vec<_>>(), [DeleteCause::Recreate]);
        assert!(plan.writes.is_empty());
    }

    #[test]
    fn children_with_one_name_in_two_namespaces_are_different_children() {
        let elsewhere = DesiredChild { name: ObjectRef::new("other", "a"), ..child("a", "1", "f") };
        assert_eq!(planned(vec![elsewhere], vec![live("a", "1", "f")]), ["create a", "delete a"], "it moves");
        assert_eq!(planned(vec![child("a", "1", "f")], vec![live("a", "1", "f")]), [""; 0]);
    }
}
