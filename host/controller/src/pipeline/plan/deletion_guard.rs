//! The guard against mass deletion. Holds back deletes that are probably a mistake of the plugin, until somebody confirms them.
//! Pure, except that it counts suspicious plans of a new plugin version.

use tokio::time::Instant;

use super::Plan;
use crate::{
    labels,
    object::Object,
    pipeline::observe::Observed,
    plugin::{ActivePlugin, FEW_OBJECTS, NewVersionVerdict, NewVersionWindow},
};

/// An object with fewer children may lose most of them at once, because that often is an ordinary change.
const FEW_CHILDREN: usize = 10;

/// The decision about a plan's deletes.
#[derive(Clone, Debug, PartialEq)]
pub enum DeletionDecision {
    /// Carry them out.
    Allow,
    /// Decide again after the new version has reconciled the other objects.
    Postpone,
    /// Leave them until somebody confirms them. The text continues a sentence that begins with "the plugin".
    HoldBack(String),
}

/// The context of a decision, besides plan and observation.
#[derive(Clone, Copy, Debug)]
pub struct DeletionContext<'a> {
    /// The plugin version's short digest, which the annotation [`labels::ALLOW_REMOVAL`] must have.
    pub version: &'a str,
    /// Whether the plugin decorates the object and does not own it. Nothing tells then whether a user's change of the object is carried out,
    /// so only a new version is suspicious.
    pub is_decorator: bool,
    /// Whether the plugin declares in its answer that it removes many children on purpose.
    pub on_purpose: bool,
    /// Whether the object's generation is reported but not carried out yet. The deletes then follow from a user's change, although
    /// the status has the current generation.
    pub is_pending: bool,
    /// The first minute of the plugin's version.
    pub new_version: &'a NewVersionWindow,
}

/// Decides about the deletes of a plan. Only deletes without a change of the object are suspicious.
pub fn decide(plan: &Plan, observed: &Observed, context: DeletionContext<'_>) -> DeletionDecision {
    let DeletionContext { version, is_decorator, on_purpose, is_pending, new_version } = context;
    let object = &observed.object;
    let lost = plan.deletes.len();
    let is_suspicious = lost > 0
        && !on_purpose
        && !is_pending
        && (is_decorator || object.is_observed())
        && !is_confirmed(object, version);
    // Counting reads the annotations of every child, and most plans delete nothing.
    let all = is_suspicious.then(|| removable(observed));
    // For every object, whatever is decided: the window also has to learn which objects this version does not leave empty.
    let of_version = new_version.judge(&object.name, all == Some(lost), Instant::now());
    let Some(all) = all else { return DeletionDecision::Allow };
    if !is_decorator && all >= FEW_CHILDREN && lost * 2 > all {
        let why = format!("would remove {lost} of {all} children of an object that has not changed");
        return DeletionDecision::HoldBack(why);
    }
    match of_version {
        NewVersionVerdict::Fine => DeletionDecision::Allow,
        NewVersionVerdict::TooEarly => DeletionDecision::Postpone,
        NewVersionVerdict::EmptiesMany => DeletionDecision::HoldBack(format!(
            "would remove all children, as of more than {FEW_OBJECTS} other objects, right after the plugin's version \
             came to work"
        )),
    }
}

/// The number of children that could be deleted at most.
fn removable(observed: &Observed) -> usize {
    observed.all_children().filter(|child| !child.object.deleting && !child.object.is_kept()).count()
}

fn is_confirmed(object: &Object, version: &str) -> bool {
    // The version is part of the confirmation, because the next version may delete children by mistake.
    object.annotation(labels::ALLOW_REMOVAL).is_some_and(|confirmed| confirmed == version)
}

/// The command that confirms held back deletes.
pub fn how_to_confirm(plugin: &ActivePlugin, object: &Object) -> String {
    let confirmation = format!("{}={}", labels::ALLOW_REMOVAL, plugin.short_digest());
    format!("{} --overwrite (or --all in the place of the name)", plugin.how_to_annotate(object, &confirmation))
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use pilothouse_engine::contract::KindRef;
    use serde_json::json;

    use super::*;
    use crate::{
        pipeline::{
            observe::LiveChild,
            plan::{Delete, DeleteCause},
        },
        projection::Projected,
        readiness::ReadinessRules,
    };

    fn observed(children: usize, text: &serde_json::Value) -> Observed {
        let kind = KindRef::new("v1", "ConfigMap");
        let child = |number| LiveChild {
            kind: kind.clone(),
            object: Arc::new(Object::sample("ns", &format!("child-{number}"))),
            projection: Projected::All,
        };
        Observed {
            kind: KindRef::new("example.com/v1", "Web"),
            object: Arc::new(Object { generation: 7, text: text.to_string().into(), ..Object::sample("ns", "a") }),
            projection: None,
            children: (0..children).map(child).collect(),
            former: Vec::new(),
            kinds: BTreeMap::new(),
            schema: None,
            namespaces: None,
            readiness: ReadinessRules::default(),
        }
    }

    /// A plan that deletes the first children.
    fn plan(observed: &Observed, lost: usize) -> Plan {
        let lost = observed.children.iter().take(lost);
        let delete = |child: &LiveChild| Delete {
            kind: child.kind.clone(),
            live: child.object.clone(),
            cause: DeleteCause::NotReturned,
        };
        let deletes = lost.map(delete).collect();
        Plan { deletes, ..Plan::default() }
    }

    #[test]
    fn deletes_of_most_children_of_an_unchanged_object_are_held_back() {
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
        for (name, all, lost, object, on_purpose, is_pending, held) in cases {
            let observed = observed(all, object);
            let new_version = &NewVersionWindow::begin([]);
            let context = DeletionContext { version: "v1", is_decorator: false, on_purpose, is_pending, new_version };
            let decision = decide(&plan(&observed, lost), &observed, context);
            assert_eq!(matches!(decision, DeletionDecision::HoldBack(_)), held, "{name}: {decision:?}");
        }
    }
}
