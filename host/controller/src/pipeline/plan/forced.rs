//! Which children are deleted at once: those that are being deleted already, and for which the plugin waits no longer. Pure.

use std::collections::BTreeSet;

use super::{Delete, DeleteCause};
use crate::pipeline::observe::{LiveChild, Observed};

/// The deletes of the children at these places in the request. A child that is not being deleted is left, and so is one that only waits for
/// its finalizers: there is no grace period left to end.
pub fn forced(observed: &Observed, places: &BTreeSet<u32>) -> Vec<Delete> {
    if places.is_empty() {
        return Vec::new();
    }
    let children = (0_u32..).zip(observed.shown_children());
    let chosen = children.filter(|(place, _)| places.contains(place)).map(|(_, child)| child);
    let stuck = chosen.filter(|child| child.object.deleting && !child.object.is_deleting_at_once());
    let delete =
        |child: &LiveChild| Delete { kind: child.kind.clone(), live: child.object.clone(), cause: DeleteCause::Forced };
    stuck.map(delete).collect()
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeMap, sync::Arc};

    use pilothouse_engine::contract::KindRef;
    use serde_json::json;

    use super::*;
    use crate::{object::Object, projection::Projected, readiness::ReadinessRules};

    fn pod(name: &str, grace: Option<i64>, projection: Projected) -> LiveChild {
        let text = json!({"metadata": {"name": name, "deletionGracePeriodSeconds": grace}}).to_string();
        let object = Object { deleting: grace.is_some(), text: text.into(), ..Object::sample("ns", name) };
        LiveChild { kind: KindRef::new("v1", "Pod"), object: Arc::new(object), projection }
    }

    #[test]
    fn only_what_is_shown_and_is_being_deleted_with_a_grace_period_is_deleted_at_once() {
        let observed = Observed {
            kind: KindRef::new("example.com/v1", "Web"),
            object: Arc::new(Object::sample("ns", "web")),
            projection: None,
            children: vec![
                // The plugin does not see it, so it has no place.
                pod("hidden", Some(30), Projected::Nothing),
                pod("stuck", Some(30), Projected::All),
                pod("runs", None, Projected::All),
                pod("held", Some(0), Projected::All),
                pod("patient", Some(30), Projected::All),
            ],
            former: Vec::new(),
            kinds: BTreeMap::new(),
            schema: None,
            namespaces: None,
            readiness: ReadinessRules::default(),
        };
        let names = |places: &[u32]| -> Vec<_> {
            let deletes = forced(&observed, &places.iter().copied().collect());
            assert!(deletes.iter().all(|delete| delete.cause == DeleteCause::Forced));
            deletes.iter().map(|delete| delete.live.name.name.to_string()).collect()
        };
        assert_eq!(names(&[0, 1, 2, 7]), ["stuck"]);
        assert_eq!(names(&[]), Vec::<String>::new());
    }
}
