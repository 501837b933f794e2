//! The object's status as it shall be: the plugin's fields, the conditions, the observed generation. Follows the API
//! conventions for conditions and the rules of kstatus. Pure.

use jiff::Timestamp;
use pilothouse_engine::contract::{Condition, ConditionStatus};
use serde_json::{Map, Value, json};

use crate::cache::Object;

/// How an object is, in the host's words.
#[derive(Clone, Debug, PartialEq)]
pub enum Health {
    /// Everything is applied; the plugin's own `Ready` says the rest.
    Applied,
    /// Not there yet, but on its way.
    Progressing(Why),
    /// Going on needs somebody to change something.
    Stalled(Why),
}

/// A reason and a message of a condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Why {
    /// One CamelCase word for programs.
    pub reason: String,
    /// A sentence for people.
    pub message: String,
}

impl Why {
    /// A reason with its message.
    pub fn new(reason: impl Into<String>, message: impl Into<String>) -> Self {
        Self { reason: reason.into(), message: message.into() }
    }
}

/// What a reconcile says about the object.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// The plugin's status fields; none leaves those that are there.
    pub status: Option<Map<String, Value>>,
    /// The plugin's conditions; none leaves those that are there.
    pub conditions: Option<Vec<Condition>>,
    /// How the object is.
    pub health: Health,
}

/// The status that an object shall have.
pub fn desired_status(object: &Object, live: &Map<String, Value>, report: &Report, now: Timestamp) -> Map<String, Value> {
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

/// Whether a status is as it shall be. The order of conditions does not matter.
pub fn same_status(desired: &Map<String, Value>, live: &Map<String, Value>) -> bool {
    let rest = |status: &Map<String, Value>| {
        let mut status = status.clone();
        status.remove("conditions");
        status
    };
    let sorted = |status: &Map<String, Value>| {
        let mut conditions = conditions_of(status).to_vec();
        conditions.sort_by_key(|condition| condition_type(condition).to_owned());
        conditions
    };
    sorted(desired) == sorted(live) && rest(desired) == rest(live)
}

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
    let hosts = host_conditions(report);
    let is_hosts = |kind: &str| hosts.iter().any(|host| host.condition_type == kind);
    let mut all: Vec<_> = hosts.iter().map(|condition| stamps.stamp(condition)).collect();
    match &report.conditions {
        Some(own) => {
            all.extend(own.iter().filter(|own| !is_hosts(&own.condition_type)).map(|condition| stamps.stamp(condition)));
        }
        None => all.extend(stamps.live.iter().filter(|live| !is_hosts(condition_type(live))).cloned()),
    }
    all
}

/// `Ready`, `Reconciling` and `Stalled`. Ready is the plugin's own word only while nothing of the host's speaks
/// against it.
fn host_conditions(report: &Report) -> [Condition; 3] {
    let own_ready = report.conditions.iter().flatten().find(|condition| condition.condition_type == "Ready");
    let condition = |condition_type: &str, status, reason: &str, message: &str| Condition {
        condition_type: condition_type.to_owned(),
        status,
        reason: reason.to_owned(),
        message: message.to_owned(),
    };
    let (yes, no) = (ConditionStatus::IsTrue, ConditionStatus::IsFalse);
    let calm = |kind: &str| condition(kind, no, "Reconciled", "");
    match &report.health {
        Health::Applied => match own_ready {
            Some(ready) if ready.status != yes => {
                [ready.clone(), condition("Reconciling", yes, &ready.reason, &ready.message), calm("Stalled")]
            }
            Some(ready) => [ready.clone(), calm("Reconciling"), calm("Stalled")],
            None => [
                condition("Ready", yes, "Reconciled", "all children are applied"),
                calm("Reconciling"),
                calm("Stalled"),
            ],
        },
        Health::Progressing(Why { reason, message }) => [
            condition("Ready", no, reason, message),
            condition("Reconciling", yes, reason, message),
            calm("Stalled"),
        ],
        Health::Stalled(Why { reason, message }) => [
            condition("Ready", no, reason, message),
            condition("Reconciling", no, reason, ""),
            condition("Stalled", yes, reason, message),
        ],
    }
}

impl Stamps<'_> {
    /// Adds what the host keeps: when the status last changed, and for which generation it was found.
    fn stamp(&self, condition: &Condition) -> Value {
        let status = match condition.status {
            ConditionStatus::IsTrue => "True",
            ConditionStatus::IsFalse => "False",
            ConditionStatus::Unknown => "Unknown",
        };
        let before = self.live.iter().find(|live| {
            condition_type(live) == condition.condition_type && live.get("status").is_some_and(|live| live == status)
        });
        let since = before.and_then(|before| before.get("lastTransitionTime").cloned());
        json!({
            "type": condition.condition_type,
            "status": status,
            "reason": condition.reason,
            "message": condition.message,
            "observedGeneration": self.generation,
            "lastTransitionTime": since.unwrap_or_else(|| json!(self.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())),
        })
    }
}
