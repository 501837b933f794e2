//! One reconcile's output, built step by step. It checks nothing that the host checks anyway.

use crate::{Condition, Error, Event, Measurement, Options, Verdict, raw};
use serde::Serialize;

/// One reconcile's output. Children, status, conditions, events and measurements are honoured with every verdict.
///
/// Without a call of [`Response::child`] or [`Response::no_children`] the children stay as they are.
#[derive(Debug)]
#[must_use]
pub struct Response {
    raw: raw::Response,
    fault: Option<Error>,
}

impl Response {
    /// The children returned are what the object asks for.
    pub fn done() -> Self {
        Self::of(Verdict::Done)
    }

    /// Something outside is missing: ask again after so many seconds, or when a lookup changes.
    pub fn wait(reason: impl Into<String>, message: impl Into<String>, seconds: u32) -> Self {
        let waiting = raw::Waiting { reason: reason.into(), message: message.into(), seconds };
        Self::of(Verdict::Wait(waiting))
    }

    /// A passing fault: ask again with backoff.
    pub fn retry(message: impl Into<String>) -> Self {
        Self::of(Verdict::Retry(message.into()))
    }

    /// The object cannot be satisfied as it is: do not ask again before it, a child or a lookup changes.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::of(Verdict::Invalid(message.into()))
    }

    /// With one more child that shall exist. It serialises to a Kubernetes object with `apiVersion`, `kind` and
    /// `metadata.name`: [`crate::json!`], `serde_json::json!`, or a type of `k8s-openapi`.
    pub fn child(self, child: impl Serialize) -> Self {
        self.child_with(child, Options::default())
    }

    /// With one more child that shall exist, treated as `options` say.
    pub fn child_with(mut self, child: impl Serialize, options: Options) -> Self {
        if let Some(object) = self.written("a child", &child) {
            self.raw.children.get_or_insert_default().push(raw::Child {
                object,
                on_immutable: options.on_immutable,
                on_removal: options.on_removal,
                unmanaged_fields: options.unmanaged,
            });
        }
        self
    }

    /// With no children at all: those that exist are removed.
    pub fn no_children(mut self) -> Self {
        self.raw.children = Some(Vec::new());
        self
    }

    /// Removing most of the object's children on purpose: the host would hold that back otherwise.
    pub fn removes_many(mut self) -> Self {
        self.raw.removes_many = true;
        self
    }

    /// With these status fields; `conditions` and `observedGeneration` are the host's.
    pub fn status(mut self, status: impl Serialize) -> Self {
        self.raw.status = self.written("the status", &status);
        self
    }

    /// With one more condition.
    pub fn condition(mut self, condition: Condition) -> Self {
        self.raw.conditions.push(condition);
        self
    }

    /// With one more event.
    pub fn event(mut self, event: Event) -> Self {
        self.raw.events.push(event);
        self
    }

    /// With one more sample.
    pub fn measurement(mut self, measurement: Measurement) -> Self {
        self.raw.measurements.push(measurement);
        self
    }

    /// Asking again after so many seconds, at the latest.
    pub fn requeue_after(mut self, seconds: u32) -> Self {
        self.raw.requeue_after = Some(seconds);
        self
    }

    fn of(verdict: Verdict) -> Self {
        let raw = raw::Response {
            verdict,
            children: None,
            removes_many: false,
            status: None,
            conditions: Vec::new(),
            events: Vec::new(),
            measurements: Vec::new(),
            requeue_after: None,
        };
        Self { raw, fault: None }
    }

    fn written(&mut self, what: &'static str, value: &impl Serialize) -> Option<raw::Json> {
        serde_json::to_string(value).map_err(|error| self.fault.get_or_insert(Error::write(what, &error))).ok()
    }
}

/// What crosses to the host. A response with a part that could not be written leaves everything as it is.
impl From<Response> for raw::Response {
    fn from(response: Response) -> Self {
        match response.fault {
            None => response.raw,
            Some(fault) => Response::from(fault).raw,
        }
    }
}

/// A response made by hand.
impl From<raw::Response> for Response {
    fn from(raw: raw::Response) -> Self {
        Self { raw, fault: None }
    }
}

impl<E: Into<Response>> From<Result<Response, E>> for Response {
    fn from(result: Result<Response, E>) -> Self {
        result.unwrap_or_else(Into::into)
    }
}
