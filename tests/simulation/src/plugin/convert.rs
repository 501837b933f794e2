//! The contract's types of the SDK as those of the engine: the same in two crates. Decides nothing.

use pilothouse_engine::contract::{
    Child, Condition, ConditionStatus, Event, EventType, Handling, ImmutablePolicy, RemovalPolicy, Response, Verdict,
    Waiting,
};
use pilothouse_sdk::raw;

/// A response. None of the plugins here declares measurements, so it has none.
pub(super) fn response(response: raw::Response) -> Response {
    Response {
        verdict: verdict(response.verdict),
        children: response.children.map(|children| children.into_iter().map(child).collect()),
        removes_many: response.removes_many,
        status: response.status,
        conditions: response.conditions.into_iter().map(condition).collect(),
        events: response.events.into_iter().map(event).collect(),
        measurements: Vec::new(),
        requeue_after: response.requeue_after,
    }
}

fn verdict(verdict: raw::Verdict) -> Verdict {
    match verdict {
        raw::Verdict::Done => Verdict::Done,
        raw::Verdict::Wait(raw::Waiting { reason, message, seconds }) => {
            Verdict::Wait(Waiting { reason, message, seconds })
        }
        raw::Verdict::Retry(why) => Verdict::Retry(why),
        raw::Verdict::Invalid(why) => Verdict::Invalid(why),
    }
}

fn child(child: raw::Child) -> Child {
    let raw::Child { object, handling, after, on_immutable, on_removal, unmanaged_fields } = child;
    Child {
        object,
        handling: match handling {
            raw::Handling::Apply => Handling::Apply,
            raw::Handling::Create => Handling::Create,
            raw::Handling::Keep => Handling::Keep,
        },
        after,
        on_immutable: match on_immutable {
            raw::ImmutablePolicy::Fail => ImmutablePolicy::Fail,
            raw::ImmutablePolicy::Recreate => ImmutablePolicy::Recreate,
        },
        on_removal: match on_removal {
            raw::RemovalPolicy::Delete => RemovalPolicy::Delete,
            raw::RemovalPolicy::Keep => RemovalPolicy::Keep,
        },
        unmanaged_fields,
    }
}

fn condition(condition: raw::Condition) -> Condition {
    let raw::Condition { condition_type, status, reason, message } = condition;
    let status = match status {
        raw::ConditionStatus::IsTrue => ConditionStatus::IsTrue,
        raw::ConditionStatus::IsFalse => ConditionStatus::IsFalse,
        raw::ConditionStatus::Unknown => ConditionStatus::Unknown,
    };
    Condition { condition_type, status, reason, message }
}

fn event(event: raw::Event) -> Event {
    let raw::Event { event_type, reason, message } = event;
    let event_type = match event_type {
        raw::EventType::Normal => EventType::Normal,
        raw::EventType::Warning => EventType::Warning,
    };
    Event { event_type, reason, message }
}
