//! Stage 5: what must be done. Compares what is desired with what is there and names every write with its reason.
//! Pure: takes no client, and the same values always make the same plan.

use std::{
    collections::BTreeSet,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
};

use pilothouse_engine::contract::KindRef;
use serde_json::Value;

use super::{
    check::DesiredChild,
    compare::{Difference, differences},
    displaced::restoration,
    handover::handover,
    observe::Observed,
};
use crate::{cache::Object, labels};

/// All writes of one reconcile. Deletes come after everything else, and only if everything else succeeded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// Creates and updates.
    pub writes: Vec<Write>,
    /// Children that are no longer wanted.
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
    pub cause: Cause,
    /// A merge patch that comes before the apply, where elements of lists stand in the place of ours.
    pub restoration: Option<Value>,
    /// Live values to apply as the second field manager first, of fields that are left to others from now on.
    pub handover: Option<Value>,
}

/// Why a child is written.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// It is not there.
    Missing,
    /// It is there, but the plugin returns something else than was applied last.
    Changed {
        /// The child as it is.
        live: Arc<Object>,
        /// The fields that differ; none where only a field was dropped.
        differences: Vec<Difference>,
    },
    /// It is there and the plugin returns the same, but somebody else changed it.
    Drifted {
        /// The child as it is.
        live: Arc<Object>,
        /// The fields that differ.
        differences: Vec<Difference>,
    },
}

/// A delete.
#[derive(Clone, Debug, PartialEq)]
pub struct Delete {
    /// Kind of the child.
    pub kind: KindRef,
    /// The child as it is.
    pub live: Arc<Object>,
}

/// Differences that an apply did not remove: the API server normalises these values, so they are no drift.
#[derive(Clone, Debug, Default)]
pub struct Normalised(BTreeSet<u64>);

impl Normalised {
    /// Remembers that applying `child` left `differences` as they are.
    pub fn remember(&mut self, child: &DesiredChild, live: &Object, differences: &[Difference]) {
        self.0.insert(Self::fingerprint(child, live, differences));
    }

    fn holds(&self, child: &DesiredChild, live: &Object, differences: &[Difference]) -> bool {
        !self.0.is_empty() && self.0.contains(&Self::fingerprint(child, live, differences))
    }

    fn fingerprint(child: &DesiredChild, live: &Object, differences: &[Difference]) -> u64 {
        let mut hasher = DefaultHasher::new();
        (&live.uid, &child.fingerprint).hash(&mut hasher);
        for difference in differences {
            (&difference.path, difference.live.to_string()).hash(&mut hasher);
        }
        hasher.finish()
    }
}

impl Plan {
    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty() && self.deletes.is_empty()
    }
}

impl Cause {
    /// The child as it is, unless it is missing.
    pub fn live(&self) -> Option<&Arc<Object>> {
        match self {
            Self::Missing => None,
            Self::Changed { live, .. } | Self::Drifted { live, .. } => Some(live),
        }
    }

    /// The fields that differ.
    pub fn differences(&self) -> &[Difference] {
        match self {
            Self::Missing => &[],
            Self::Changed { differences, .. } | Self::Drifted { differences, .. } => differences,
        }
    }
}

/// Plans the way from what is there to what is desired.
pub fn plan(children: Option<Vec<DesiredChild>>, observed: &Observed, normalised: &Normalised) -> Plan {
    let mut plan = Plan::default();
    let Some(children) = children else { return plan };
    plan.deletes = unwanted(&children, observed);
    for child in children {
        match observed.child(&child.kind, &child.name) {
            None => plan.writes.push(Write { child, cause: Cause::Missing, restoration: None, handover: None }),
            Some(live) if observed.is_released(live) => {}
            Some(live) if live.deleting => plan.awaited.push(super::check::describe(&child.kind, &child.name)),
            Some(live) => plan.writes.extend(write(child, live, normalised)),
        }
    }
    plan
}

/// The children that are there, not wanted, and not to be kept.
fn unwanted(children: &[DesiredChild], observed: &Observed) -> Vec<Delete> {
    let wanted: BTreeSet<_> = children.iter().map(|child| (&child.kind, &*child.name)).collect();
    let there = observed.own().chain(observed.former.iter().filter(|(_, child)| !observed.is_released(child)));
    let unwanted = there.filter(|(kind, live)| !live.deleting && !wanted.contains(&(kind, &*live.name.name)));
    let deletes = unwanted.filter(|(_, live)| !live.is_kept());
    deletes.map(|(kind, live)| Delete { kind: kind.clone(), live: live.clone() }).collect()
}

/// Where the fingerprint is, at the end of a JSON pointer.
const FINGERPRINT: &str = "/pilothouse.dev~1applied";

/// The write of a child that is there, if it needs one.
fn write(child: DesiredChild, live: &Arc<Object>, normalised: &Normalised) -> Option<Write> {
    // Whatever cannot be read as JSON differs in everything.
    let state = serde_json::from_str::<Value>(&live.text).unwrap_or_default();
    let applied = state.pointer("/metadata/annotations").and_then(|annotations| annotations.get(labels::APPLIED));
    let same = applied.and_then(Value::as_str) == Some(&child.fingerprint);
    let mut differences = differences(&child.body, &state);
    let live = live.clone();
    let cause = if !same {
        // The fingerprint itself is how the change was noticed, and nothing to tell.
        differences.retain(|found| !found.path.ends_with(FINGERPRINT));
        Cause::Changed { live, differences }
    } else if !differences.is_empty() && !normalised.holds(&child, &live, &differences) {
        Cause::Drifted { live, differences }
    } else {
        return None;
    };
    let handover = handover(&child, &state);
    let restoration = restoration(&child.body, state);
    Some(Write { child, cause, restoration, handover })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pilothouse_engine::contract::ImmutablePolicy;
    use serde_json::json;

    use super::*;
    use crate::cache::ControllerRef;

    fn kind() -> KindRef {
        KindRef::new("v1", "ConfigMap")
    }

    fn child(name: &str, data: &str, fingerprint: &str) -> DesiredChild {
        DesiredChild {
            kind: kind(),
            name: name.to_owned(),
            namespace: "ns".to_owned(),
            body: json!({"data": {"key": data}}),
            fingerprint: fingerprint.to_owned(),
            on_immutable: ImmutablePolicy::Fail,
            unmanaged: Vec::new(),
        }
    }

    fn live(name: &str, data: &str, fingerprint: &str) -> Object {
        let text = json!({"data": {"key": data}, "metadata": {"annotations": {labels::APPLIED: fingerprint}}});
        Object { text: text.to_string().into(), ..Object::sample("ns", name) }
    }

    fn observed(children: Vec<Object>) -> Observed {
        Observed {
            kind: KindRef::new("example.com/v1", "Web"),
            object: Arc::new(live("shop", "", "")),
            excerpt: None,
            child_excerpts: Vec::new(),
            children: children.into_iter().map(|child| (kind(), Arc::new(child))).collect(),
            former: Vec::new(),
            kinds: BTreeMap::new(),
        }
    }

    /// The plan in words: what would be done to which child.
    fn planned(wanted: Option<Vec<DesiredChild>>, there: Vec<Object>) -> Vec<String> {
        let plan = plan(wanted, &observed(there), &Normalised::default());
        let writes = plan.writes.iter().map(|write| {
            let verb = match write.cause {
                Cause::Missing => "create",
                Cause::Changed { .. } => "change",
                Cause::Drifted { .. } => "repair",
            };
            format!("{verb} {}", write.child.name)
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
            ("missing", Some(vec![child("a", "1", "f")]), vec![], vec!["create a"]),
            ("the same", Some(vec![child("a", "1", "f")]), vec![live("a", "1", "f")], vec![]),
            ("changed by the plugin", Some(vec![child("a", "2", "g")]), vec![live("a", "1", "f")], vec!["change a"]),
            ("a field dropped", Some(vec![child("a", "1", "g")]), vec![live("a", "1", "f")], vec!["change a"]),
            ("changed by somebody", Some(vec![child("a", "1", "f")]), vec![live("a", "9", "f")], vec!["repair a"]),
            ("no longer wanted", Some(vec![]), vec![live("a", "1", "f")], vec!["delete a"]),
            ("left alone", None, vec![live("a", "9", "f")], vec![]),
            ("being deleted", Some(vec![child("a", "1", "f")]), vec![deleting.clone()], vec!["await ConfigMap 'a'"]),
            ("being deleted and unwanted", Some(vec![]), vec![deleting], vec![]),
            ("kept", Some(vec![]), vec![kept], vec![]),
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
            let plan = plan(Some(wanted), &observed, &Normalised::default());
            let writes = plan.writes.iter().map(|write| write.child.name.clone());
            writes.chain(plan.deletes.iter().map(|delete| delete.live.name.name.to_string())).collect::<Vec<_>>()
        };
        assert_eq!(names(vec![child("released", "2", "g"), child("ours", "2", "g")]), ["ours"]);
        assert_eq!(names(vec![]), ["ours"]);
        assert_eq!(observed.request("null").children.len(), 1, "the plugin does not see it");
    }

    #[test]
    fn what_an_apply_did_not_remove_is_no_drift_until_it_changes() {
        let (wanted, there) = (child("a", "1000m", "f"), live("a", "1", "f"));
        let found = differences(&wanted.body, &serde_json::from_str(&there.text).unwrap_or_default());
        let mut normalised = Normalised::default();
        normalised.remember(&wanted, &there, &found);
        let planned =
            |there: Object| plan(Some(vec![wanted.clone()]), &observed(vec![there]), &normalised).writes.len();
        assert_eq!(planned(there), 0);
        assert_eq!(planned(live("a", "2", "f")), 1);
    }
}
