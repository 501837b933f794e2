//! Builds and compares the status of an object: the plugin's fields, the conditions, the observed generation. Follows the API
//! conventions for conditions, and kstatus for `Reconciling` and `Stalled`. Pure.

use std::{
    collections::BTreeSet,
    fmt,
    hash::{Hash, Hasher},
};

use jiff::Timestamp;
use pilothouse_engine::contract::{Condition, ConditionStatus};
use serde_json::{Map, Value, json};

use crate::{
    clock::api_time,
    object::Object,
    pipeline::conditions::{
        READY, RECONCILING, STALLED, StatusReason, THROTTLED, is_written_by_host, status_word, within_limit,
    },
};

/// The health of an object, as the host sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Health {
    /// Everything is applied. The plugin may set `Ready` itself.
    Applied,
    /// The same, but the plugin left the children as they are.
    ChildrenUntouched,
    /// Everything is applied, but some children are not as their specs say. The plugin may set `Ready` itself.
    ChildrenNotReady(StatusReason),
    /// In progress.
    Progressing(StatusReason),
    /// Stuck until somebody changes something.
    Stalled(StatusReason),
}

/// For people who ask the host.
impl fmt::Display for Health {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Applied => f.write_str("applied"),
            Self::ChildrenUntouched => f.write_str("the children are left as they are"),
            Self::ChildrenNotReady(why) => write!(f, "applied, {}: {}", why.reason, why.message),
            Self::Progressing(why) => write!(f, "in progress, {}: {}", why.reason, why.message),
            Self::Stalled(why) => write!(f, "stuck, {}: {}", why.reason, why.message),
        }
    }
}

/// The content of a status.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The plugin's status fields; none leaves the existing ones.
    pub status: Option<Map<String, Value>>,
    /// The plugin's conditions; none leaves the existing ones.
    pub conditions: Option<Vec<Condition>>,
    /// The object's health.
    pub health: Health,
    /// The reason of `Throttled`, if the object is throttled.
    pub throttled: Option<StatusReason>,
}

impl Hash for Report {
    fn hash<H: Hasher>(&self, hasher: &mut H) {
        let Self { status, conditions, health, throttled } = self;
        (status, health, throttled, conditions.as_ref().map(Vec::len)).hash(hasher);
        for Condition { condition_type, status, reason, message } in conditions.iter().flatten() {
            (condition_type, status_word(*status), reason, message).hash(hasher);
        }
    }
}

/// The desired status of an object, for a report.
pub fn desired_status(
    object: &Object,
    live: &Map<String, Value>,
    report: &Report,
    now: Timestamp,
) -> Map<String, Value> {
    let mut status = match &report.status {
        Some(status) => status.clone(),
        None => live.clone(),
    };
    let stamps = Stamps { generation: object.generation, now, live: conditions_of(live) };
    let conditions = conditions(report, &stamps);
    status.insert("conditions".to_owned(), Value::Array(conditions));
    status.insert("observedGeneration".to_owned(), json!(object.generation));
    status
}

/// Whether the live status is as desired. The order of conditions does not matter, nor whether a field is missing or empty: after
/// the last entry of a map is removed, server-side apply leaves null, and no later apply turns that into an empty map.
pub fn same_status(desired: &Map<String, Value>, live: &Map<String, Value>) -> bool {
    let all_of = |one: &[Value], other: &[Value]| one.iter().all(|condition| other.contains(condition));
    let (wanted, there) = (conditions_of(desired), conditions_of(live));
    let same_conditions = wanted.len() == there.len() && all_of(wanted, there) && all_of(there, wanted);
    let mut others = desired.keys().chain(live.keys()).filter(|field| *field != "conditions");
    same_conditions && others.all(|field| same_value(desired.get(field), live.get(field)))
}

/// Whether the desired status differs in something that somebody may wait for: the status or reason of a condition, or the observed
/// generation. The rest are details, such as the number of running Pods.
pub fn is_news(desired: &Map<String, Value>, live: &Map<String, Value>) -> bool {
    let reported = |status: &Map<String, Value>| {
        let word = |condition: &Value, field: &str| condition.get(field).cloned().unwrap_or_default();
        let conditions = conditions_of(status).iter();
        let reported =
            conditions.map(|condition| ["type", "status", "reason"].map(|field| word(condition, field).to_string()));
        (reported.collect::<BTreeSet<_>>(), status.get("observedGeneration").cloned())
    };
    reported(desired) != reported(live)
}

fn same_value(desired: Option<&Value>, live: Option<&Value>) -> bool {
    match (desired, live) {
        (Some(Value::Object(desired)), Some(Value::Object(live))) => {
            let mut fields = desired.keys().chain(live.keys());
            fields.all(|field| same_value(desired.get(field), live.get(field)))
        }
        _ => desired == live || (is_empty_value(desired) && is_empty_value(live)),
    }
}

/// Whether the live status has all desired fields and conditions. It may have more.
pub fn contains_status(desired: &Map<String, Value>, live: &Map<String, Value>) -> bool {
    let has_condition = |condition: &Value| conditions_of(live).contains(condition);
    let mut fields = desired.iter().filter(|(field, _)| *field != "conditions");
    conditions_of(desired).iter().all(has_condition)
        && fields.all(|(field, value)| same_value(Some(value), live.get(field)))
}

/// Whether the live status has a condition of a type that the desired one lacks.
pub fn drops_condition(desired: &Map<String, Value>, live: &Map<String, Value>) -> bool {
    conditions_of(live).iter().any(|condition| !has_type(desired, condition))
}

/// Whether the live status has a condition of the host's types that the desired one lacks.
pub fn keeps_host_condition(desired: &Map<String, Value>, live: &Map<String, Value>) -> bool {
    let is_of_host = |condition: &&Value| is_written_by_host(condition_type(condition));
    conditions_of(live).iter().filter(is_of_host).any(|condition| !has_type(desired, condition))
}

/// The desired status together with the live conditions of other types that are not the host's: somebody else may own them.
pub fn with_other_conditions(mut desired: Map<String, Value>, live: &Map<String, Value>) -> Map<String, Value> {
    let is_other = |live: &&Value| !is_written_by_host(condition_type(live)) && !has_type(&desired, live);
    let others: Vec<_> = conditions_of(live).iter().filter(is_other).cloned().collect();
    if let Some(conditions) = desired.get_mut("conditions").and_then(Value::as_array_mut) {
        conditions.extend(others);
    }
    desired
}

fn has_type(status: &Map<String, Value>, condition: &Value) -> bool {
    conditions_of(status).iter().any(|known| condition_type(known) == condition_type(condition))
}

fn is_empty_value(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::Object(fields)) => fields.values().all(|value| is_empty_value(Some(value))),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    }
}

fn condition(condition_type: &str, status: ConditionStatus, reason: &str, message: &str) -> Condition {
    Condition {
        condition_type: condition_type.to_owned(),
        status,
        reason: reason.to_owned(),
        message: message.to_owned(),
    }
}

/// The parts of a condition that the host adds.
struct Stamps<'a> {
    generation: i64,
    now: Timestamp,
    live: &'a [Value],
}

fn conditions_of(status: &Map<String, Value>) -> &[Value] {
    status.get("conditions").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn condition_type(condition: &Value) -> &str {
    condition.get("type").and_then(Value::as_str).unwrap_or_default()
}

fn conditions(report: &Report, stamps: &Stamps<'_>) -> Vec<Value> {
    let throttled =
        report.throttled.as_ref().map(|why| condition(THROTTLED, ConditionStatus::IsTrue, &why.reason, &why.message));
    let HostConditions { ready, reconciling_or_stalled } = host_conditions(report);
    let host = [Some(ready), reconciling_or_stalled, throttled].into_iter().flatten();
    let mut all: Vec<_> = host.map(|condition| stamps.stamp(&condition)).collect();
    match &report.conditions {
        Some(own) => {
            all.extend(
                own.iter()
                    .filter(|own| !is_written_by_host(&own.condition_type))
                    .map(|condition| stamps.stamp(condition)),
            );
        }
        // Not stamped again: these conditions are about the generation for which the plugin reported them.
        None => all.extend(stamps.live.iter().filter(|live| !is_written_by_host(condition_type(live))).cloned()),
    }
    all
}

/// `Ready` is always there; `Reconciling` or `Stalled` only while it is true, as kstatus requires.
struct HostConditions {
    ready: Condition,
    reconciling_or_stalled: Option<Condition>,
}

/// The conditions of the host. The plugin's `Ready` and `Stalled` count only if the host itself has no reason for not ready.
fn host_conditions(report: &Report) -> HostConditions {
    let not_ready = |condition_type: &str, StatusReason { reason, message }: &StatusReason| HostConditions {
        ready: condition(READY, ConditionStatus::IsFalse, reason, message),
        reconciling_or_stalled: Some(condition(condition_type, ConditionStatus::IsTrue, reason, message)),
    };
    let ready = |message: &str| condition(READY, ConditionStatus::IsTrue, "Reconciled", message);
    match &report.health {
        Health::Applied => plugin_conditions(report, ready("all children are applied")),
        Health::ChildrenUntouched => plugin_conditions(report, ready("the plugin leaves the children as they are")),
        Health::ChildrenNotReady(StatusReason { reason, message }) => {
            plugin_conditions(report, condition(READY, ConditionStatus::IsFalse, reason, message))
        }
        Health::Progressing(why) => not_ready(RECONCILING, why),
        Health::Stalled(why) => not_ready(STALLED, why),
    }
}

/// The conditions of an object whose answer is applied: the plugin's own, or this `Ready`.
fn plugin_conditions(report: &Report, ready: Condition) -> HostConditions {
    let own = |kind: &str| report.conditions.iter().flatten().find(|condition| condition.condition_type == kind);
    let (yes, no) = (ConditionStatus::IsTrue, ConditionStatus::IsFalse);
    let own_ready = own(READY);
    if let Some(stalled) = own(STALLED).filter(|stalled| stalled.status == yes) {
        // An object that is both ready and stalled would contradict kstatus.
        let ready = own_ready.filter(|ready| ready.status != yes).cloned();
        let ready = ready.unwrap_or_else(|| condition(READY, no, &stalled.reason, &stalled.message));
        return HostConditions { ready, reconciling_or_stalled: Some(stalled.clone()) };
    }
    let ready = own_ready.cloned().unwrap_or(ready);
    // A plugin that reports not ready without a reason to be stuck is still at work.
    let reconciling = (ready.status != yes).then(|| condition(RECONCILING, yes, &ready.reason, &ready.message));
    HostConditions { ready, reconciling_or_stalled: reconciling }
}

impl Stamps<'_> {
    /// Adds the observed generation and the time of the last change of the condition's status.
    fn stamp(&self, condition: &Condition) -> Value {
        let status = status_word(condition.status);
        let before = self.live.iter().find(|live| {
            condition_type(live) == condition.condition_type && live.get("status").is_some_and(|live| live == status)
        });
        let since = before.and_then(|before| before.get("lastTransitionTime").cloned());
        json!({
            "type": condition.condition_type,
            "status": status,
            "reason": condition.reason,
            "message": within_limit(&condition.message),
            "observedGeneration": self.generation,
            "lastTransitionTime": since.unwrap_or_else(|| json!(api_time(self.now))),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THEN: &str = "2026-01-01T00:00:00Z";

    fn object() -> Object {
        Object { generation: 7, ..Object::sample("ns", "a") }
    }

    fn own(condition_type: &str, status: ConditionStatus, reason: &str) -> Condition {
        Condition { condition_type: condition_type.into(), status, reason: reason.into(), message: "m".into() }
    }

    fn report(health: Health, conditions: Option<Vec<Condition>>) -> Report {
        Report { status: None, conditions, health, throttled: None }
    }

    /// The conditions in words: `Ready=True:Reason`.
    fn words(status: &Map<String, Value>) -> Vec<String> {
        let word = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        let conditions = conditions_of(status).iter();
        conditions.map(|c| format!("{}={}:{}", word(c, "type"), word(c, "status"), word(c, "reason"))).collect()
    }

    fn status(report: &Report, live: &Map<String, Value>) -> Map<String, Value> {
        desired_status(&object(), live, report, Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn conditions_of_others_stay_but_not_those_of_the_types_that_the_host_writes() {
        let status = |types: &[&str]| {
            let conditions: Vec<_> = types.iter().map(|kind| json!({"type": kind, "status": "True"})).collect();
            Map::from_iter([("conditions".to_owned(), Value::Array(conditions))])
        };
        for (desired, live, drops, keeps, together) in [
            (["Ready"].as_slice(), ["Ready"].as_slice(), false, false, ["Ready"].as_slice()),
            (&["Ready"], &["Ready", "Stalled"], true, true, &["Ready"]),
            (&["Ready"], &["Backup"], true, false, &["Ready", "Backup"]),
            (&["Ready", "Backup"], &["Backup"], false, false, &["Ready", "Backup"]),
        ] {
            let (desired, live) = (status(desired), status(live));
            let found = (drops_condition(&desired, &live), keeps_host_condition(&desired, &live));
            assert_eq!(found, (drops, keeps), "{desired:?} {live:?}");
            assert_eq!(with_other_conditions(desired, &live), status(together));
        }
    }

    #[test]
    fn a_condition_or_a_generation_is_news_and_a_count_or_a_message_is_not() {
        let live = json!({
            "active": 1, "observedGeneration": 7,
            "conditions": [{"type": "Running", "status": "True", "reason": "Up", "message": "1 of 2", "lastTransitionTime": THEN}],
        });
        let with = |pointer: &str, value: Value| {
            let mut changed = live.clone();
            changed.pointer_mut(pointer).into_iter().for_each(|field| *field = value.clone());
            assert_ne!(changed, live, "{pointer}");
            changed
        };
        let fields = |status: &Value| status.as_object().cloned().unwrap_or_default();
        for (desired, expected) in [
            (live.clone(), false),
            (with("/active", json!(2)), false),
            (with("/conditions/0/message", json!("2 of 2")), false),
            (with("/conditions/0/status", json!("False")), true),
            (with("/conditions/0/reason", json!("Other")), true),
            (with("/conditions/0/type", json!("Other")), true),
            (with("/conditions", json!([])), true),
            (with("/observedGeneration", json!(8)), true),
        ] {
            assert_eq!(is_news(&fields(&desired), &fields(&live)), expected, "{desired}");
        }
        assert!(is_news(&fields(&live), &Map::new()), "the first status");
    }

    #[test]
    fn ready_comes_from_the_plugin_unless_the_host_reports_a_problem() {
        let (yes, no) = (ConditionStatus::IsTrue, ConditionStatus::IsFalse);
        let why = || StatusReason::new("Why", "m");
        let cases = [
            (Health::Applied, vec![], &["Ready=True:Reconciled"][..]),
            (Health::Applied, vec![own("Ready", yes, "Up")], &["Ready=True:Up"][..]),
            (Health::Applied, vec![own("Ready", no, "Slow")], &["Ready=False:Slow", "Reconciling=True:Slow"]),
            (
                Health::Applied,
                vec![own("Ready", no, "Failed"), own("Stalled", yes, "Over")],
                &["Ready=False:Failed", "Stalled=True:Over"],
            ),
            (
                Health::Applied,
                vec![own("Ready", yes, "Up"), own("Stalled", yes, "Over")],
                &["Ready=False:Over", "Stalled=True:Over"],
            ),
            (
                Health::Applied,
                vec![own("Ready", no, "Slow"), own("Stalled", no, "Well")],
                &["Ready=False:Slow", "Reconciling=True:Slow"],
            ),
            (
                Health::Progressing(why()),
                vec![own("Stalled", yes, "Over")],
                &["Ready=False:Why", "Reconciling=True:Why"],
            ),
            (Health::Progressing(why()), vec![own("Ready", yes, "Up")], &["Ready=False:Why", "Reconciling=True:Why"]),
            (Health::ChildrenNotReady(why()), vec![], &["Ready=False:Why", "Reconciling=True:Why"]),
            (Health::ChildrenNotReady(why()), vec![own("Ready", yes, "Up")], &["Ready=True:Up"]),
            (Health::Stalled(why()), vec![own("Ready", yes, "Up")], &["Ready=False:Why", "Stalled=True:Why"]),
        ];
        for (health, conditions, expected) in cases {
            assert_eq!(words(&status(&report(health, Some(conditions)), &Map::new())), expected);
        }
    }

    #[test]
    fn a_transition_time_stays_while_the_status_stays() {
        let live: Map<String, Value> = serde_json::from_value(json!({"conditions": [
            {"type": "Ready", "status": "True", "reason": "Old", "message": "", "lastTransitionTime": THEN},
            {"type": "Stalled", "status": "True", "reason": "Old", "message": "", "lastTransitionTime": THEN},
        ]}))
        .unwrap_or_default();
        let well = status(&report(Health::Applied, Some(Vec::new())), &live);
        assert_eq!(words(&well), ["Ready=True:Reconciled"], "Stalled ends");
        let since = |status: &Map<String, Value>| status["conditions"][0]["lastTransitionTime"].clone();
        assert_eq!(since(&well), THEN, "Ready stays True");
        let status = status(&report(Health::Progressing(StatusReason::new("Why", "m")), None), &live);
        assert_eq!(since(&status), "1970-01-01T00:00:00Z", "Ready changed");
        assert_eq!(status["conditions"][0]["observedGeneration"], 7);
        assert_eq!(status["observedGeneration"], 7);
    }

    #[test]
    fn a_fault_keeps_the_plugins_report_and_an_answer_replaces_it() {
        let live: Map<String, Value> = serde_json::from_value(json!({
            "replicas": 3, "conditions": [{"type": "Available", "status": "True", "reason": "Old"}],
        }))
        .unwrap_or_default();
        let fault = status(&report(Health::Stalled(StatusReason::new("PluginTrapped", "m")), None), &live);
        assert_eq!(fault["replicas"], 3);
        assert!(words(&fault).contains(&"Available=True:Old".to_owned()));
        let answer = Report { status: Some(Map::new()), ..report(Health::Applied, Some(Vec::new())) };
        let answer = status(&answer, &live);
        assert_eq!(answer.get("replicas"), None);
        assert_eq!(words(&answer), ["Ready=True:Reconciled"]);
    }

    #[test]
    fn a_missing_field_equals_an_empty_one() {
        let status = |text: Value| serde_json::from_value::<Map<String, Value>>(text).unwrap_or_default();
        for (desired, live, same) in [
            (json!({"seen": {}}), json!({"seen": null}), true),
            (json!({"seen": {}}), json!({}), true),
            (json!({}), json!({"seen": {"by": {"name": null}, "times": []}}), true),
            (json!({"seen": {"by": {}}, "n": 1}), json!({"seen": null, "n": 1}), true),
            (json!({"n": 0}), json!({}), false),
            (json!({"seen": {}}), json!({"seen": {"a": 1}}), false),
            (json!({"seen": ""}), json!({"seen": null}), false),
        ] {
            assert_eq!(same_status(&status(desired.clone()), &status(live.clone())), same, "{desired} and {live}");
        }
    }

    #[test]
    fn the_order_of_conditions_does_not_matter() {
        let status = |conditions: Value| {
            serde_json::from_value::<Map<String, Value>>(json!({"a": 1, "conditions": conditions})).unwrap_or_default()
        };
        let (a, b) = (json!({"type": "A", "status": "True"}), json!({"type": "B", "status": "True"}));
        assert!(same_status(&status(json!([a, b])), &status(json!([b, a]))));
        assert!(!same_status(&status(json!([a])), &status(json!([a, b]))));
        assert!(!same_status(&status(json!([a])), &Map::new()));
    }
}
