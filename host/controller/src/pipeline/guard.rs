//! The guard against mass deletion: holds deletes back that are more likely a plugin's mistake than anybody's wish, until
//! somebody confirms them. Looks at plans only; deletes nothing and calls nobody.

use std::{
    collections::HashSet,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use serde_json::Value;

use super::{observe::Observed, plan::Plan, report::status_of};
use crate::{
    cache::{Name, Object},
    labels,
    plugin::ActivePlugin,
};

/// Objects with fewer children can lose most of them at once: that is an ordinary change.
const FEW_CHILDREN: usize = 10;

/// How long a version of a plugin is on probation.
const PROBATION: Duration = Duration::from_secs(60);

/// So many objects may lose all their children to a version on probation.
const FEW_OBJECTS: usize = 3;

/// What becomes of a plan's deletes.
#[derive(Clone, Debug, PartialEq)]
pub enum Judgement {
    /// They are carried out.
    Pass,
    /// They wait until the other objects have been looked at.
    Wait,
    /// They are left until somebody confirms them; why.
    Hold(String),
}

/// What the guard needs to know besides plan and state.
#[derive(Clone, Copy, Debug)]
pub struct Circumstances<'a> {
    /// Names the plugin's version; the annotation [`labels::ALLOW_REMOVAL`] confirms with it.
    pub version: &'a str,
    /// Whether the plugin says that it removes many on purpose.
    pub on_purpose: bool,
    /// Whether a plan for the object's present generation has not been carried out yet.
    pub unsettled: bool,
    /// The version's probation.
    pub probation: &'a Probation,
}

/// Judges the deletes of a plan.
pub fn judge(plan: &Plan, observed: &Observed, circumstances: Circumstances<'_>) -> Judgement {
    let Circumstances { version, on_purpose, unsettled, probation } = circumstances;
    let object = &observed.object;
    let (lost, all) = (plan.deletes.len(), removable(observed));
    let suspicious = lost > 0 && !on_purpose && !unsettled && is_unchanged(object) && !is_confirmed(object, version);
    let by_version = probation.judge(&object.name, suspicious && lost == all, Instant::now());
    if !suspicious {
        return Judgement::Pass;
    }
    if all >= FEW_CHILDREN && lost * 2 > all {
        return Judgement::Hold(format!("would remove {lost} of {all} children of an object that has not changed"));
    }
    by_version
}

/// How many children could be removed at most.
fn removable(observed: &Observed) -> usize {
    let children = observed.children.iter().chain(&observed.former);
    children.filter(|(_, child)| !child.deleting && !child.is_kept()).count()
}

/// Whether the object is as it was when it was last reported on.
pub fn is_unchanged(object: &Object) -> bool {
    status_of(object).get("observedGeneration").and_then(Value::as_i64) == Some(object.generation)
}

fn is_confirmed(object: &Object, version: &str) -> bool {
    object.annotation(labels::ALLOW_REMOVAL).is_some_and(|confirmed| confirmed == version)
}

/// The first time of a version of a plugin: a version that leaves many objects without children at once is held back.
#[derive(Debug)]
pub struct Probation {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    ends: Instant,
    /// Objects that this version has not been asked about.
    unseen: HashSet<Name>,
    /// Objects that it would leave without children.
    emptied: HashSet<Name>,
    /// It would leave too many so: held back for good.
    failed: bool,
}

impl Probation {
    /// Begins now, for a version that will be asked about these objects.
    pub fn begin(objects: impl IntoIterator<Item = Name>) -> Self {
        let state = State {
            ends: Instant::now() + PROBATION,
            unseen: objects.into_iter().collect(),
            emptied: HashSet::new(),
            failed: false,
        };
        Self { state: Mutex::new(state) }
    }

    /// Tells that this version has been asked about an object, or that there is nothing to ask.
    pub fn saw(&self, object: &Name) {
        self.lock().unseen.remove(object);
    }

    fn judge(&self, object: &Name, emptied: bool, now: Instant) -> Judgement {
        let mut state = self.lock();
        state.unseen.remove(object);
        if !emptied {
            state.emptied.remove(object);
            return Judgement::Pass;
        }
        let on_probation = now < state.ends;
        if on_probation {
            state.emptied.insert(object.clone());
            state.failed |= state.emptied.len() > FEW_OBJECTS;
        }
        if state.failed {
            return Judgement::Hold(format!(
                "would remove all children, as of more than {FEW_OBJECTS} other objects, right after the plugin's version \
                 came to work"
            ));
        }
        if on_probation && !state.unseen.is_empty() { Judgement::Wait } else { Judgement::Pass }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The command that confirms deletes which are held back.
pub fn how_to_confirm(plugin: &ActivePlugin, object: &Object) -> String {
    let kind = plugin.objects.kind();
    let plural =
        plugin.objects.installed().map_or_else(|| kind.kind.to_lowercase(), |found| found.resource.plural.clone());
    let namespace =
        if object.name.namespace.is_empty() { String::new() } else { format!(" -n {}", object.name.namespace) };
    format!(
        "kubectl annotate{namespace} {plural}.{} {} {}={} --overwrite (or --all in the place of the name)",
        kind.group(),
        object.name.name,
        labels::ALLOW_REMOVAL,
        plugin.short_digest()
    )
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use pilothouse_engine::contract::KindRef;
    use serde_json::json;

    use super::*;
    use crate::pipeline::plan::Delete;

    fn observed(children: usize, text: &serde_json::Value) -> Observed {
        let kind = KindRef::new("v1", "ConfigMap");
        let child = |number| (kind.clone(), Arc::new(Object::sample("ns", &format!("child-{number}"))));
        Observed {
            kind: KindRef::new("example.com/v1", "Web"),
            object: Arc::new(Object { generation: 7, text: text.to_string().into(), ..Object::sample("ns", "a") }),
            excerpt: None,
            child_excerpts: Vec::new(),
            children: (0..children).map(child).collect(),
            former: Vec::new(),
            kinds: BTreeMap::new(),
        }
    }

    /// A plan that deletes the first children.
    fn plan(observed: &Observed, lost: usize) -> Plan {
        let lost = observed.children.iter().take(lost);
        let deletes = lost.map(|(kind, live)| Delete { kind: kind.clone(), live: live.clone() }).collect();
        Plan { deletes, ..Plan::default() }
    }

    #[test]
    fn most_of_many_children_of_an_unchanged_object_are_held_back() {
        let unchanged = json!({"status": {"observedGeneration": 7}});
        let changed = json!({"status": {"observedGeneration": 6}});
        let confirm = |version| {
            json!({
                "metadata": {"annotations": {labels::ALLOW_REMOVAL: version}},
                "status": {"observedGeneration": 7},
            })
        };
        let cases = [
            ("more than half of ten", 10, 6, &unchanged, false, false, true),
            ("half", 10, 5, &unchanged, false, false, false),
            ("all of nine", 9, 9, &unchanged, false, false, false),
            ("changed object", 10, 10, &changed, false, false, false),
            ("never reported", 10, 10, &json!({}), false, false, false),
            ("on purpose", 10, 10, &unchanged, true, false, false),
            ("a failed change", 10, 10, &unchanged, false, true, false),
            ("confirmed", 10, 10, &confirm("v1"), false, false, false),
            ("confirmed for another version", 10, 10, &confirm("v0"), false, false, true),
        ];
        for (name, all, lost, object, on_purpose, unsettled, held) in cases {
            let observed = observed(all, object);
            let probation = &Probation::begin([]);
            let circumstances = Circumstances { version: "v1", on_purpose, unsettled, probation };
            let judgement = judge(&plan(&observed, lost), &observed, circumstances);
            assert_eq!(matches!(judgement, Judgement::Hold(_)), held, "{name}: {judgement:?}");
        }
    }

    #[test]
    fn a_new_version_may_not_empty_many_objects() {
        let names: Vec<_> = (0..5).map(|number| Name::new("ns", &format!("web-{number}"))).collect();
        let now = Instant::now();
        let probation = Probation::begin(names.clone());
        for name in &names[..FEW_OBJECTS] {
            assert_eq!(probation.judge(name, true, now), Judgement::Wait, "nothing is lost before it is known");
        }
        assert!(matches!(probation.judge(&names[3], true, now), Judgement::Hold(_)));
        assert!(matches!(probation.judge(&names[0], true, now), Judgement::Hold(_)), "also those before");
        let later = now + 2 * PROBATION;
        assert!(matches!(probation.judge(&names[0], true, later), Judgement::Hold(_)), "and for good");
        assert_eq!(probation.judge(&names[4], false, later), Judgement::Pass);
    }

    #[test]
    fn a_few_objects_may_be_emptied_once_all_have_been_looked_at() {
        let names: Vec<_> = (0..5).map(|number| Name::new("ns", &format!("web-{number}"))).collect();
        let now = Instant::now();
        let probation = Probation::begin(names.clone());
        assert_eq!(probation.judge(&names[0], true, now), Judgement::Wait);
        names[1..4].iter().for_each(|name| assert_eq!(probation.judge(name, false, now), Judgement::Pass));
        assert_eq!(probation.judge(&names[0], true, now), Judgement::Wait);
        probation.saw(&names[4]);
        assert_eq!(probation.judge(&names[0], true, now), Judgement::Pass);
        assert_eq!(probation.judge(&names[1], true, now + 2 * PROBATION), Judgement::Pass, "probation is over");
    }
}
