//! Fields that an update would leave behind and that contradict the desired ones: the numbers of a rolling update beside another
//! type of strategy, or the source that somebody gave a volume beside the plugin's. No apply removes a field that nobody owns, or
//! somebody else, and the API server refuses both together. Pure.

use kube::core::{Status, response::StatusCause};
use serde_json::{Map, Value};

use super::failure::{FIELD_FORBIDDEN, causes};
use crate::schema::{Cursor, ListType, Schema};

/// A merge patch that puts the desired fields in the place of those that are left over; none if the API server refuses the update for
/// anything else. It replaces whole lists, so it is for this state of the child alone.
pub(super) fn replacement(status: &Status, desired: &Value, mut live: Value, schema: &Schema) -> Option<Value> {
    let mut patch = Map::new();
    for StatusCause { reason, field, .. } in causes(status) {
        let steps: Vec<_> = field.split('.').map(|step| step.split('[').next().unwrap_or(step)).collect();
        if reason != FIELD_FORBIDDEN || !replace(desired, &mut live, &steps, schema.root()) {
            return None;
        }
        let [first, ..] = &steps[..] else { return None };
        patch.insert((*first).to_owned(), live[first].clone());
    }
    (!patch.is_empty()).then_some(Value::Object(patch))
}

/// Replaces the contradicting field in `live`, on the way to the refused field, and says whether there is one.
fn replace(desired: &Value, live: &mut Value, steps: &[&str], at: Cursor<'_>) -> bool {
    match (desired, live, steps) {
        (Value::Object(desired), Value::Object(live), [refused]) => {
            let Some(left_over) = left_over(desired, live, refused) else { return false };
            live.insert(left_over, Value::Null);
            live.extend(desired.iter().map(|(field, value)| (field.clone(), value.clone())));
            true
        }
        (Value::Object(desired), Value::Object(live), [step, rest @ ..]) => {
            let Some((desired, live)) = desired.get(*step).zip(live.get_mut(*step)) else { return false };
            replace(desired, live, rest, at.field(step))
        }
        // The index in the cause is that of the merged list, which nobody here knows.
        (Value::Array(desired), Value::Array(live), _) => {
            let ListType::Map(keys) = at.list_type() else { return false };
            desired.iter().any(|item| {
                let there = live.iter_mut().find(|there| keys.same(item, there));
                there.is_some_and(|there| replace(item, there, steps, at.items()))
            })
        }
        _ => false,
    }
}

/// The live field that contradicts a desired one, if the API server refuses this field of theirs. Only where a desired field differs: else
/// the contradiction is not about this update.
fn left_over(desired: &Map<String, Value>, live: &Map<String, Value>, refused: &str) -> Option<String> {
    if desired.iter().all(|(field, value)| live.get(field) == Some(value)) {
        return None;
    }
    if !desired.contains_key(refused) {
        return live.contains_key(refused).then(|| refused.to_owned());
    }
    // The API server names the second of two that it finds, in an order of its own. If the desired field is that one, the other is
    // known only where nothing else comes into question.
    let mut others = live.keys().filter(|field| !desired.contains_key(*field));
    match (live.contains_key(refused), others.next(), others.next()) {
        (false, Some(only), None) => Some(only.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn refused(reason: &str, field: &str) -> serde_json::Result<Status> {
        let cause = json!({"reason": reason, "message": "", "field": field});
        serde_json::from_value(json!({"code": 422, "message": "", "details": {"causes": [cause]}}))
    }

    fn workload(strategy: Value, volumes: Value) -> Value {
        json!({
            "apiVersion": "apps/v1", "kind": "Deployment",
            "spec": {"replicas": 1, "strategy": strategy, "template": {"spec": {"volumes": volumes}}},
        })
    }

    /// What becomes of a part of the spec, if the API server refuses a field of it.
    fn replaced(field: &str, desired: &Value, live: &Value) -> serde_json::Result<Option<Value>> {
        let schema = Schema::known_or_built_in(None, desired);
        let patch = replacement(&refused(FIELD_FORBIDDEN, field)?, desired, live.clone(), schema);
        Ok(patch.map(|patch| patch["spec"].clone()))
    }

    #[test]
    fn the_default_of_another_strategy_is_replaced() -> serde_json::Result<()> {
        const NUMBERS: &str = "spec.strategy.rollingUpdate";
        let rolling = json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}});
        let of = |strategy: &Value| workload(strategy.clone(), json!([]));
        let recreate = json!({"type": "Recreate"});
        let spec = replaced(NUMBERS, &of(&recreate), &of(&rolling))?.unwrap_or_default();
        assert_eq!(spec["strategy"], json!({"type": "Recreate", "rollingUpdate": null}));
        assert_eq!(spec["replicas"], 1, "the rest stays");

        let numbers = json!({"rollingUpdate": {"maxSurge": 1}});
        let spec = replaced(NUMBERS, &of(&numbers), &of(&recreate))?.unwrap_or_default();
        assert_eq!(spec["strategy"], json!({"type": null, "rollingUpdate": {"maxSurge": 1}}));

        assert_eq!(replaced(NUMBERS, &of(&recreate), &of(&recreate))?, None, "nothing is left over");
        assert_eq!(replaced("spec.replicas", &of(&recreate), &of(&rolling))?, None, "a field that both have");
        assert_eq!(replaced("spec", &of(&recreate), &of(&rolling))?, None, "an immutable spec");
        assert_eq!(replaced("spec.paused", &of(&recreate), &of(&rolling))?, None, "a field that nobody has");
        Ok(())
    }

    #[test]
    fn the_other_source_of_a_volume_is_replaced_whichever_is_refused() -> serde_json::Result<()> {
        let (empty, host) =
            (json!({"name": "data", "emptyDir": {}}), json!({"name": "data", "hostPath": {"path": "/"}}));
        let theirs = json!({"name": "theirs", "emptyDir": {}});
        let of = |volumes: &[&Value]| workload(Value::Null, json!(volumes));
        for (desired, live, replacement) in [
            (&empty, &host, json!({"name": "data", "emptyDir": {}, "hostPath": null})),
            (&host, &empty, json!({"name": "data", "hostPath": {"path": "/"}, "emptyDir": null})),
        ] {
            let field = "spec.template.spec.volumes[1].hostPath";
            let spec = replaced(field, &of(&[desired]), &of(&[&theirs, live]))?.unwrap_or_default();
            assert_eq!(spec["template"]["spec"]["volumes"], json!([theirs, replacement]));
        }
        Ok(())
    }

    #[test]
    fn other_refusals_replace_nothing() -> serde_json::Result<()> {
        let desired = workload(json!({"type": "Recreate"}), json!([]));
        let live = workload(json!({"type": "RollingUpdate", "rollingUpdate": {}}), json!([]));
        let schema = Schema::known_or_built_in(None, &desired);
        let invalid = refused("FieldValueInvalid", "spec.strategy.rollingUpdate")?;
        assert_eq!(replacement(&invalid, &desired, live.clone(), schema), None);
        let without_cause: Status = serde_json::from_value(json!({"code": 422, "message": ""}))?;
        assert_eq!(replacement(&without_cause, &desired, live, schema), None);
        Ok(())
    }
}
