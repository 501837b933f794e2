//! The answer as a test writes it, and as the contract's plain types have it. Those say everything, also what the SDK's builders
//! refuse to say.

use pilothouse_sdk::{
    Condition, ConditionStatus, Event, EventType, Handling, ImmutablePolicy, RemovalPolicy, Response, Verdict, raw,
};
use serde::Deserialize;
use serde_json::Value;

/// A whole answer. Without `children`, they are left as they are.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Answer {
    verdict: VerdictSpec,
    /// The children, none to leave them as they are.
    pub children: Option<Vec<Child>>,
    /// How many ConfigMaps are returned at most that do not exist yet; those that exist are kept as they are. None for all.
    pub wave: Option<usize>,
    removes_many: bool,
    /// A JSON object; a text is returned as it is, whether it is JSON or not.
    pub status: Option<Value>,
    conditions: Vec<ConditionSpec>,
    events: Vec<EventSpec>,
    requeue_after: Option<u32>,
}

/// One child.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Child {
    /// A JSON object; a text is returned as it is, whether it is JSON or not.
    pub object: Value,
    #[serde(default)]
    handling: HandlingSpec,
    #[serde(default)]
    after: Vec<u32>,
    #[serde(default)]
    on_immutable: OnImmutable,
    #[serde(default)]
    on_removal: OnRemoval,
    #[serde(default)]
    unmanaged_fields: Vec<String>,
}

/// `done`, or an object with one of the others.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum VerdictSpec {
    #[default]
    Done,
    Wait {
        reason: String,
        message: String,
        seconds: u32,
    },
    Retry(String),
    Invalid(String),
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum HandlingSpec {
    #[default]
    Apply,
    Create,
    Keep,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum OnImmutable {
    #[default]
    Fail,
    Recreate,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum OnRemoval {
    #[default]
    Delete,
    Keep,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ConditionSpec {
    r#type: String,
    status: StatusSpec,
    reason: String,
    #[serde(default)]
    message: String,
}

#[derive(Clone, Copy, Debug, Deserialize)]
enum StatusSpec {
    True,
    False,
    Unknown,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct EventSpec {
    #[serde(default)]
    r#type: EventTypeSpec,
    reason: String,
    #[serde(default)]
    message: String,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
enum EventTypeSpec {
    #[default]
    Normal,
    Warning,
}

impl Answer {
    /// With no more of the children that do not exist yet than one wave has.
    pub fn in_waves(mut self, exists: impl Fn(&str) -> bool) -> Self {
        let Some(wave) = self.wave else { return self };
        let Some(children) = self.children.take() else { return self };
        let name = |child: &Child| child.object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let (mut there, mut missing): (Vec<_>, Vec<_>) = children.into_iter().partition(|child| exists(&name(child)));
        there.iter_mut().for_each(|child| child.handling = HandlingSpec::Keep);
        missing.truncate(wave);
        there.extend(missing);
        Self { children: Some(there), ..self }
    }
}

impl From<Answer> for Response {
    fn from(answer: Answer) -> Self {
        raw::Response {
            verdict: answer.verdict.into(),
            children: answer.children.map(|children| children.into_iter().map(Into::into).collect()),
            removes_many: answer.removes_many,
            status: answer.status.map(text),
            conditions: answer.conditions.into_iter().map(Into::into).collect(),
            events: answer.events.into_iter().map(Into::into).collect(),
            measurements: Vec::new(),
            requeue_after: answer.requeue_after,
        }
        .into()
    }
}

impl From<VerdictSpec> for Verdict {
    fn from(spec: VerdictSpec) -> Self {
        match spec {
            VerdictSpec::Done => Self::Done,
            VerdictSpec::Wait { reason, message, seconds } => Self::Wait(raw::Waiting { reason, message, seconds }),
            VerdictSpec::Retry(message) => Self::Retry(message),
            VerdictSpec::Invalid(message) => Self::Invalid(message),
        }
    }
}

impl From<Child> for raw::Child {
    fn from(child: Child) -> Self {
        Self {
            object: text(child.object),
            handling: match child.handling {
                HandlingSpec::Apply => Handling::Apply,
                HandlingSpec::Create => Handling::Create,
                HandlingSpec::Keep => Handling::Keep,
            },
            after: child.after,
            on_immutable: match child.on_immutable {
                OnImmutable::Fail => ImmutablePolicy::Fail,
                OnImmutable::Recreate => ImmutablePolicy::Recreate,
            },
            on_removal: match child.on_removal {
                OnRemoval::Delete => RemovalPolicy::Delete,
                OnRemoval::Keep => RemovalPolicy::Keep,
            },
            unmanaged_fields: child.unmanaged_fields,
        }
    }
}

impl From<ConditionSpec> for Condition {
    fn from(spec: ConditionSpec) -> Self {
        Self {
            condition_type: spec.r#type,
            status: match spec.status {
                StatusSpec::True => ConditionStatus::IsTrue,
                StatusSpec::False => ConditionStatus::IsFalse,
                StatusSpec::Unknown => ConditionStatus::Unknown,
            },
            reason: spec.reason,
            message: spec.message,
        }
    }
}

impl From<EventSpec> for Event {
    fn from(spec: EventSpec) -> Self {
        Self {
            event_type: match spec.r#type {
                EventTypeSpec::Normal => EventType::Normal,
                EventTypeSpec::Warning => EventType::Warning,
            },
            reason: spec.reason,
            message: spec.message,
        }
    }
}

/// JSON text of a value; a text as it is.
fn text(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}
