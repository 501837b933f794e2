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
mod handover;
mod list_repair;
mod normalised;
mod recreation;

use std::{collections::BTreeSet, fmt, sync::Arc};

use pilothouse_engine::contract::KindRef;
use serde_json::Value;

use self::{
    diff::{Difference, differences},
    handover::handover,
    list_repair::list_repair,
};
pub use self::{
    normalised::Normalised,
    recreation::{Recreation, Recreations},
};
use super::{
    check::DesiredChild,
    observe::{LiveChild, Observed},
};
use crate::{
    labels,
    object::{Object, annotation, describe},
    schema::Schema,
};

/// The writes and deletes of one round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Creates and updates.
    pub writes: Vec<Write>,
    /// Deletes. They come after all writes, and only if those succeeded.
    pub deletes: Vec<Delete>,
    /// Desired children that are being deleted. They are created again once they are gone.
    pub awaited: Vec<String>,
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
    /// An immutable field would change, and the plugin's policy is to recreate the child.
    Recreate,
}

impl fmt::Display for DeleteCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotReturned => "no longer returned",
            Self::KindNotDeclared => "its kind is no longer declared",
            Self::Recreate => "recreate: a field cannot change",
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

/// Plans the writes and deletes that make the live children equal to the desired ones.
pub fn plan(children: Vec<DesiredChild>, observed: &Observed, history: PlanHistory<'_>) -> Plan {
    let mut plan = Plan { deletes: surplus(&children, observed), ..Plan::default() };
    let live = observed.children_by_name();
    for child in children {
        match live.get(&(&child.kind, &child.name)).copied() {
            None => plan.writes.push(create(child)),
            Some(live) if observed.is_released(live) => {}
            // An update would be accepted, but it would be lost when the object goes.
            Some(live) if live.deleting => plan.awaited.push(describe(&child.kind, &child.name)),
            Some(live) if history.recreations.contains(&child, live) => {
                plan.deletes.push(Delete { kind: child.kind, live: live.clone(), cause: DeleteCause::Recreate });
            }
            Some(live) => {
                let schema = observed.schema_of(&child.kind);
                plan.writes.extend(update(child, live, schema, history.normalised));
            }
        }
    }
    plan
}

/// The deletes of live children that are not desired. Children to be kept and released ones stay.
fn surplus(children: &[DesiredChild], observed: &Observed) -> Vec<Delete> {
    let wanted: BTreeSet<_> = children.iter().map(|child| (&child.kind, &child.name)).collect();
    let declared = observed.children.iter().map(|child| (child, DeleteCause::NotReturned));
    let former = observed.former.iter().map(|child| (child, DeleteCause::KindNotDeclared));
    let delete = |(child, cause): (&LiveChild, DeleteCause)| {
        let live = &child.object;
        // Whether it stays is read from its annotations, which takes longest and therefore comes last.
        let is_surplus = !live.deleting && !wanted.contains(&(&child.kind, &live.name));
        let goes = is_surplus && !live.is_kept() && !observed.is_released(live);
        goes.then(|| Delete { kind: child.kind.clone(), live: live.clone(), cause })
    };
    declared.chain(former).filter_map(delete).collect()
}

fn create(child: DesiredChild) -> Write {
    Write { child, cause: WriteCause::Missing, list_repair: None, handover: None }
}

/// The JSON pointer of the digest, below the annotations.
const DIGEST: &str = "/pilothouse.dev~1applied";

/// The update of a live child, if it needs one.
fn update(child: DesiredChild, live: &Arc<Object>, schema: Option<&Schema>, normalised: &Normalised) -> Option<Write> {
    // A text that is not JSON becomes null, which differs in all fields.
    let state = serde_json::from_str::<Value>(&live.text).unwrap_or_default();
    let is_same = annotation(&state, labels::APPLIED) == Some(&child.digest);
    let mut differences = differences(&child.body, &state, schema);
    // Another digest is a cause even without a difference: a field that the plugin no longer returns is no desired field, and only
    // an apply removes it (decision 1).
    let cause = if !is_same {
        // The digest always differs here. It is of no use to the readers of the log.
        differences.retain(|found| !found.path.ends_with(DIGEST));
        WriteCause::Changed(LiveState { live: live.clone(), differences })
    } else if !differences.is_empty() && !normalised.holds(&child, live, &differences) {
        WriteCause::Drifted(LiveState { live: live.clone(), differences })
    } else {
        return None;
    };
    let handover = handover(&child, &state);
    // An element whose key somebody changed is missing for the comparison, or its list is another one.
    let may_need_repair = cause.differences().iter().any(|found| found.live.is_null() || found.live.is_array());
    let list_repair = may_need_repair.then(|| list_repair(&child.body, state, schema)).flatten();
    Some(Write { child, cause, list_repair, handover })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pilothouse_engine::contract::ImmutablePolicy;
    use serde_json::json;

    use super::*;
    use crate::{
        object::{ControllerRef, ObjectRef},
        plugin::projection::Projected,
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
        writes.chain(deletes).chain(awaited).collect()
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
        assert_eq!(observed.request("null").children.len(), 1, "the plugin does not see it");
    }

    #[test]
    fn a_difference_that_an_apply_did_not_remove_is_no_drift_until_it_changes() {
        let (wanted, there) = (child("a", "1000m", "f"), live("a", "1", "f"));
        let found = differences(&wanted.body, &serde_json::from_str(&there.text).unwrap_or_default(), None);
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
