//! Stage 5: what must be done. Compares what is desired with what is there and names every write and every delete with its
//! cause. Pure: takes no client, and the same values always make the same plan.

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
    object::{Object, describe},
    schema::Schema,
};

/// All writes of one reconcile. Deletes come after everything else, and only if everything else succeeded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Creates and updates.
    pub writes: Vec<Write>,
    /// Children that are to go.
    pub deletes: Vec<Delete>,
    /// Children that are being deleted and must be gone before they are created anew.
    pub awaited: Vec<String>,
}

/// A create or an update.
#[derive(Clone, Debug, PartialEq)]
pub struct Write {
    /// What to apply.
    pub child: DesiredChild,
    /// Why.
    pub cause: WriteCause,
    /// A merge patch that comes before the apply, where elements of lists stand in the place of ours.
    pub list_repair: Option<Value>,
    /// Live values to apply as the second field manager first, of fields that are left to others from now on.
    pub handover: Option<Value>,
}

/// Why a child is written.
#[derive(Clone, Debug, PartialEq)]
pub enum WriteCause {
    /// It is not there.
    Missing,
    /// It is there, but the plugin returns something else than was applied last.
    Changed(LiveState),
    /// It is there and the plugin returns the same, but somebody else changed it.
    Drifted(LiveState),
}

/// A child as it is, and how that differs from what is desired.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveState {
    /// The child as it is.
    pub live: Arc<Object>,
    /// The fields that differ; none where only a field was dropped.
    pub differences: Vec<Difference>,
}

/// A delete.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    /// Kind of the child.
    pub kind: KindRef,
    /// The child as it is.
    pub live: Arc<Object>,
    /// Why.
    pub cause: DeleteCause,
}

/// Why a child is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteCause {
    /// The plugin no longer returns it.
    NotReturned,
    /// The plugin's manifest no longer declares its kind.
    KindNotDeclared,
    /// A field cannot change, and the plugin wants the child created anew then.
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
    /// The child as it is, unless it is missing.
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

    /// A line for the log: what was found, and what is done about it.
    pub fn finding(&self, kind: &str) -> String {
        match self {
            Self::Missing => format!("Creating {kind}."),
            Self::Changed(state) if state.differences.is_empty() => format!("Updating {kind}."),
            Self::Changed(_) | Self::Drifted(_) => format!("Drift detected. Updating {kind}."),
        }
    }
}

/// What a plan knows of earlier ones.
#[derive(Clone, Copy, Debug)]
pub struct Experience<'a> {
    /// Differences that no apply removes.
    pub normalised: &'a Normalised,
    /// Children that must be created anew.
    pub recreations: &'a Recreations,
}

/// Plans the way from what is there to what is desired.
pub fn plan(children: Vec<DesiredChild>, observed: &Observed, experience: Experience<'_>) -> Plan {
    let mut plan = Plan { deletes: unwanted(&children, observed), ..Plan::default() };
    for child in children {
        match observed.child(&child.kind, &child.name) {
            None => plan.writes.push(create(child)),
            Some(live) if observed.is_released(live) => {}
            Some(live) if live.deleting => plan.awaited.push(describe(&child.kind, &child.name)),
            Some(live) if experience.recreations.contains(&child, live) => {
                plan.deletes.push(Delete { kind: child.kind, live: live.clone(), cause: DeleteCause::Recreate });
            }
            Some(live) => {
                let schema = observed.schema_of(&child.kind);
                plan.writes.extend(update(child, live, schema, experience.normalised));
            }
        }
    }
    plan
}

/// The children that are there, not wanted, and not to be kept.
fn unwanted(children: &[DesiredChild], observed: &Observed) -> Vec<Delete> {
    let wanted: BTreeSet<_> = children.iter().map(|child| (&child.kind, &child.name)).collect();
    let declared = observed.children.iter().map(|child| (child, DeleteCause::NotReturned));
    let former = observed.former.iter().map(|child| (child, DeleteCause::KindNotDeclared));
    let delete = |(child, cause): (&LiveChild, DeleteCause)| {
        let live = &child.object;
        let is_settled = live.deleting || live.is_kept() || observed.is_released(live);
        let goes = !is_settled && !wanted.contains(&(&child.kind, &live.name));
        goes.then(|| Delete { kind: child.kind.clone(), live: live.clone(), cause })
    };
    declared.chain(former).filter_map(delete).collect()
}

fn create(child: DesiredChild) -> Write {
    Write { child, cause: WriteCause::Missing, list_repair: None, handover: None }
}

/// Where the digest is, at the end of a JSON pointer.
const DIGEST: &str = "/pilothouse.dev~1applied";

/// The write of a child that is there, if it needs one.
fn update(child: DesiredChild, live: &Arc<Object>, schema: Option<&Schema>, normalised: &Normalised) -> Option<Write> {
    // Whatever cannot be read as JSON differs in everything.
    let state = serde_json::from_str::<Value>(&live.text).unwrap_or_default();
    let applied = state.pointer("/metadata/annotations").and_then(|annotations| annotations.get(labels::APPLIED));
    let is_same = applied.and_then(Value::as_str) == Some(&child.digest);
    let mut differences = differences(&child.body, &state, schema);
    let cause = if !is_same {
        // The digest itself is how the change was noticed, and nothing to tell.
        differences.retain(|found| !found.path.ends_with(DIGEST));
        WriteCause::Changed(LiveState { live: live.clone(), differences })
    } else if !differences.is_empty() && !normalised.holds(&child, live, &differences) {
        WriteCause::Drifted(LiveState { live: live.clone(), differences })
    } else {
        return None;
    };
    let handover = handover(&child, &state);
    let list_repair = list_repair(&child.body, state, schema);
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

    /// The plan of a host that knows nothing of earlier ones.
    fn first_plan(wanted: Vec<DesiredChild>, observed: &Observed) -> Plan {
        let (normalised, recreations) = (&Normalised::default(), &Recreations::default());
        plan(wanted, observed, Experience { normalised, recreations })
    }

    /// The plan in words: what would be done to which child.
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
    fn what_a_deleted_object_released_is_nobodys() {
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
    fn what_an_apply_did_not_remove_is_no_drift_until_it_changes() {
        let (wanted, there) = (child("a", "1000m", "f"), live("a", "1", "f"));
        let found = differences(&wanted.body, &serde_json::from_str(&there.text).unwrap_or_default(), None);
        let mut normalised = Normalised::default();
        normalised.remember(&wanted, &there, &found);
        let experience = Experience { normalised: &normalised, recreations: &Recreations::default() };
        let planned = |there: Object| plan(vec![wanted.clone()], &observed(vec![there]), experience).writes.len();
        assert_eq!(planned(there), 0);
        assert_eq!(planned(live("a", "2", "f")), 1);
    }

    #[test]
    fn a_child_that_cannot_become_what_is_wanted_is_deleted_first() {
        let (wanted, there) = (child("a", "2", "g"), live("a", "1", "f"));
        let recreations = Recreations::of([Recreation::of(&wanted, &there)]);
        let experience = Experience { normalised: &Normalised::default(), recreations: &recreations };
        let plan = plan(vec![wanted], &observed(vec![there]), experience);
        assert_eq!(plan.deletes.iter().map(|delete| delete.cause).collect::<Vec<_>>(), [DeleteCause::Recreate]);
        assert!(plan.writes.is_empty());
    }

    #[test]
    fn one_name_in_two_namespaces_is_two_children() {
        let elsewhere = DesiredChild { name: ObjectRef::new("other", "a"), ..child("a", "1", "f") };
        assert_eq!(planned(vec![elsewhere], vec![live("a", "1", "f")]), ["create a", "delete a"], "it moves");
        assert_eq!(planned(vec![child("a", "1", "f")], vec![live("a", "1", "f")]), [""; 0]);
    }
}
