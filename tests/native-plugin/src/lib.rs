//! The contract's types of the engine as those of the SDK, and back: the same in two crates. For benchmarks and tests that link a plugin
//! natively and call it as the host would. Decides nothing.

use pilothouse_engine::contract::{
    Child, Condition, ConditionStatus, Event, EventType, Handling, ImmutablePolicy, LiveChild, Readiness,
    ReadinessStatus, RemovalPolicy, Request, Response, Verdict, Waiting,
};
use pilothouse_sdk::raw;

/// A request. Nothing is ever refused where a plugin is linked natively, so it says of no child that it was.
pub fn request(request: Request) -> raw::Request {
    let Request { object, children, refused: _, config } = request;
    raw::Request { object, children: children.into_iter().map(live_child).collect(), refused: Vec::new(), config }
}

/// A response. None of the plugins that are linked natively declares measurements, so it has none.
pub fn response(response: raw::Response) -> Response {
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

fn live_child(child: LiveChild) -> raw::LiveChild {
    let Readiness { status, reason, message } = child.readiness;
    let status = match status {
        ReadinessStatus::Current => raw::ReadinessStatus::Current,
        ReadinessStatus::InProgress => raw::ReadinessStatus::InProgress,
        ReadinessStatus::Failed => raw::ReadinessStatus::Failed,
        ReadinessStatus::Terminating => raw::ReadinessStatus::Terminating,
    };
    raw::LiveChild { object: child.object, readiness: raw::Readiness { status, reason, message } }
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
