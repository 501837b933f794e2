//! Helpers for tests of plugins that serve models: the children of an answer as JSON, by kind and name. No plugin contains it.

use pilothouse_sdk::testing::{Answer, Case};
use pilothouse_sdk::{Error, Handling, Verdict, raw};
use serde_json::Value;
use std::collections::BTreeMap;

/// The children of an answer; none if it leaves them as they are.
#[derive(Clone, Debug, PartialEq)]
pub struct Children(BTreeMap<String, Value>);

impl Children {
    /// The children of an answer.
    ///
    /// # Errors
    /// The answer leaves them as they are, or one is no JSON.
    pub fn of(answer: &Answer) -> Result<Self, Error> {
        let listed = answer
            .response
            .children
            .as_ref()
            .ok_or_else(|| Error::Test(format!("the children stay as they are: {:?}", answer.verdict())))?;
        let mut all = BTreeMap::new();
        for child in listed {
            let object: Value = serde_json::from_str(&child.object).map_err(|error| Error::Test(error.to_string()))?;
            let text = |pointer| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            all.insert(format!("{} {}", text("/kind"), text("/metadata/name")), object);
        }
        Ok(Self(all))
    }

    /// The kinds and names of all.
    pub fn names(&self) -> Vec<&str> {
        self.0.keys().map(String::as_str).collect()
    }

    /// The only child of a kind.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub fn only(&self, kind: &str) -> Result<&Value, Error> {
        let mut of_kind = self.0.values().filter(|child| child["kind"] == kind);
        match (of_kind.next(), of_kind.next()) {
            (Some(child), None) => Ok(child),
            (first, _) => {
                Err(Error::Test(format!("{} of kind {kind}: {:?}", first.map_or("none", |_| "two"), self.names())))
            }
        }
    }

    /// All of them, in order of kind and name.
    pub fn iter(&self) -> impl Iterator<Item = &Value> {
        self.0.values()
    }
}

/// The answer to a case once the children of the first answer exist, as the host calls again after it has written something.
///
/// # Errors
/// A part of the case cannot be read.
pub fn settled(
    case: impl Fn() -> Result<Case, Error>,
    reconcile: fn(raw::Request) -> raw::Response,
) -> Result<Answer, Error> {
    let first = case()?.run_raw(reconcile)?;
    let applied = first.response.children.iter().flatten().filter(|child| child.handling == Handling::Apply);
    applied.fold(case()?, |case, child| case.child_yaml(&child.object)).run_raw(reconcile)
}

/// The sentence with which an answer refuses its object; none if it does not.
pub fn refusal(answer: &Answer) -> Option<&str> {
    match answer.verdict() {
        Verdict::Invalid(message) => Some(message),
        _ => None,
    }
}

/// The reason for which an answer waits; none if it does not.
pub fn waits_for(answer: &Answer) -> Option<&str> {
    match answer.verdict() {
        Verdict::Wait(waiting) => Some(&waiting.reason),
        _ => None,
    }
}

/// Status and reason of a condition: `False OOMKilled`; empty if it is not set.
pub fn condition(answer: &Answer, condition_type: &str) -> String {
    let Some(found) = answer.condition(condition_type) else { return String::new() };
    let status = match found.status {
        pilothouse_sdk::ConditionStatus::IsTrue => "True",
        pilothouse_sdk::ConditionStatus::IsFalse => "False",
        pilothouse_sdk::ConditionStatus::Unknown => "Unknown",
    };
    format!("{status} {}", found.reason)
}

/// Type and reason of each Event.
pub fn events(answer: &Answer) -> Vec<String> {
    let kind = |event: &pilothouse_sdk::Event| match event.event_type {
        pilothouse_sdk::EventType::Normal => "Normal",
        pilothouse_sdk::EventType::Warning => "Warning",
    };
    answer.response.events.iter().map(|event| format!("{} {}", kind(event), event.reason)).collect()
}
