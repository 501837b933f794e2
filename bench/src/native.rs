//! The AppService plugin as a native function behind the same trait as a WebAssembly plugin: what is left of the
//! difference is the cost of WebAssembly. Converts the SDK's contract types to the engine's, which are the same in two
//! crates.

use std::time::Instant;

use futures::future::BoxFuture;
use pilothouse_engine::{
    Call, CallContext, Manifest, Outcome, Reconciler, Recorded, Usage, Verb,
    contract::{
        Child, Condition, ConditionStatus, Event, EventType, Handling, ImmutablePolicy, LiveChild, Readiness,
        ReadinessStatus, RemovalPolicy, Request, Response, Verdict, Waiting,
    },
};
use pilothouse_sdk::raw;

/// The native AppService plugin.
pub struct NativeAppService {
    manifest: Manifest,
}

impl NativeAppService {
    /// The plugin with its own manifest.
    ///
    /// # Errors
    /// The manifest is not one.
    pub fn new() -> serde_json::Result<Self> {
        Ok(Self { manifest: serde_json::from_str(app_service::MANIFEST)? })
    }
}

impl Reconciler for NativeAppService {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn digest(&self) -> &str {
        "native"
    }

    fn call(&self, _: Verb, request: Request, _: CallContext) -> BoxFuture<'_, Call> {
        let started = Instant::now();
        let outcome = Outcome::Response(reconcile(request));
        let usage = Usage { duration: started.elapsed(), memory_peak: 0 };
        Box::pin(std::future::ready(Call { outcome, usage, recorded: Recorded::default() }))
    }
}

/// Calls the plugin's function.
pub fn reconcile(request: Request) -> Response {
    let Request { object, children, refused: _, config } = request;
    let children = children.into_iter().map(live_child).collect();
    // Nothing is ever refused in a benchmark.
    let response = app_service::reconcile_raw(raw::Request { object, children, refused: Vec::new(), config });
    Response {
        verdict: verdict(response.verdict),
        children: response.children.map(|children| children.into_iter().map(child).collect()),
        removes_many: response.removes_many,
        status: response.status,
        conditions: response.conditions.into_iter().map(condition).collect(),
        events: response.events.into_iter().map(event).collect(),
        // The plugin declares none.
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
