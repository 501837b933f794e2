//! Version 0.1 of the contract: its generated types, and the way from and to those of the newest version. What 0.1 does not have is left
//! out of a request, and gets the value in a response under which the host does what it did for 0.1. Decides nothing else.

// The generator writes one line of documentation per item only where the WIT has one.
#[allow(missing_docs)]
mod generated {
    wasmtime::component::bindgen!({ path: "wit/0.1", world: "plugin" });
}

pub(crate) use generated::Plugin as Imports;
pub(crate) use generated::pilothouse::plugin::{clock, log, lookup, trap, types};

use super::{
    Child, Condition, ConditionStatus, Event, EventType, Handling, ImmutablePolicy, KindRef, Label, LookupError,
    Measurement, RemovalPolicy, Request, Response, Verdict, Waiting,
};

impl From<Request> for types::Request {
    fn from(request: Request) -> Self {
        // What was refused is not told: 0.1 has no place for it.
        let Request { object, children, refused: _, config } = request;
        Self { object, children: children.into_iter().map(|child| child.object).collect(), config }
    }
}

impl From<types::Response> for Response {
    fn from(response: types::Response) -> Self {
        let types::Response {
            verdict,
            children,
            removes_many,
            status,
            conditions,
            events,
            measurements,
            requeue_after,
        } = response;
        Self {
            verdict: verdict.into(),
            children: children.map(all),
            removes_many,
            status,
            conditions: all(conditions),
            events: all(events),
            measurements: all(measurements),
            requeue_after,
        }
    }
}

fn all<A: Into<B>, B>(values: Vec<A>) -> Vec<B> {
    values.into_iter().map(Into::into).collect()
}

impl From<types::Verdict> for Verdict {
    fn from(verdict: types::Verdict) -> Self {
        match verdict {
            types::Verdict::Done => Self::Done,
            types::Verdict::Wait(types::Waiting { reason, message, seconds }) => {
                Self::Wait(Waiting { reason, message, seconds })
            }
            types::Verdict::Retry(message) => Self::Retry(message),
            types::Verdict::Invalid(message) => Self::Invalid(message),
        }
    }
}

impl From<types::Child> for Child {
    fn from(child: types::Child) -> Self {
        let types::Child { object, on_immutable, on_removal, unmanaged_fields } = child;
        Self {
            object,
            handling: Handling::Apply,
            after: Vec::new(),
            on_immutable: match on_immutable {
                types::ImmutablePolicy::Fail => ImmutablePolicy::Fail,
                types::ImmutablePolicy::Recreate => ImmutablePolicy::Recreate,
            },
            on_removal: match on_removal {
                types::RemovalPolicy::Delete => RemovalPolicy::Delete,
                types::RemovalPolicy::Keep => RemovalPolicy::Keep,
            },
            unmanaged_fields,
        }
    }
}

impl From<types::Condition> for Condition {
    fn from(condition: types::Condition) -> Self {
        let types::Condition { condition_type, status, reason, message } = condition;
        let status = match status {
            types::ConditionStatus::IsTrue => ConditionStatus::IsTrue,
            types::ConditionStatus::IsFalse => ConditionStatus::IsFalse,
            types::ConditionStatus::Unknown => ConditionStatus::Unknown,
        };
        Self { condition_type, status, reason, message }
    }
}

impl From<types::Event> for Event {
    fn from(event: types::Event) -> Self {
        let types::Event { event_type, reason, message } = event;
        let event_type = match event_type {
            types::EventType::Normal => EventType::Normal,
            types::EventType::Warning => EventType::Warning,
        };
        Self { event_type, reason, message }
    }
}

impl From<types::Measurement> for Measurement {
    fn from(measurement: types::Measurement) -> Self {
        let types::Measurement { name, value, labels } = measurement;
        let labels = labels.into_iter().map(|types::Label { key, value }| Label { key, value }).collect();
        Self { name, value, labels }
    }
}

impl From<types::KindRef> for KindRef {
    fn from(kind: types::KindRef) -> Self {
        Self { api_version: kind.api_version, kind: kind.kind }
    }
}

impl From<LookupError> for lookup::LookupError {
    fn from(error: LookupError) -> Self {
        match error {
            // 0.1 knows no other reason for which there is no answer.
            LookupError::Denied(why) | LookupError::TooLarge(why) => Self::Denied(why),
            LookupError::NotInstalled(why) => Self::NotInstalled(why),
        }
    }
}

impl From<log::Level> for super::log::Level {
    fn from(level: log::Level) -> Self {
        match level {
            log::Level::Error => Self::Error,
            log::Level::Warn => Self::Warn,
            log::Level::Info => Self::Info,
            log::Level::Debug => Self::Debug,
        }
    }
}
