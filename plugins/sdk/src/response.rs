//! One reconcile's output, built step by step, and the response that an error becomes. It checks nothing that the host checks
//! anyway.

use crate::object_ref::ObjectRef;
use crate::{Condition, Error, Event, Measurement, Options, Verdict, raw};
use serde::Serialize;

/// One reconcile's output. The host takes children, status, conditions, events and measurements with every verdict.
///
/// Without a call of [`Response::child`] or [`Response::no_children`] the children stay as they are.
#[derive(Debug)]
#[must_use]
pub struct Response {
    raw: raw::Response,
    /// The first part that could not be written.
    error: Option<Error>,
}

impl Response {
    /// The children of this response are what the object asks for.
    pub fn done() -> Self {
        Self::of(Verdict::Done)
    }

    /// Something outside is missing: call again after so many seconds, or when a lookup changes.
    pub fn wait(reason: impl Into<String>, message: impl Into<String>, seconds: u32) -> Self {
        let waiting = raw::Waiting { reason: reason.into(), message: message.into(), seconds };
        Self::of(Verdict::Wait(waiting))
    }

    /// A passing fault: call again with backoff.
    pub fn retry(message: impl Into<String>) -> Self {
        Self::of(Verdict::Retry(message.into()))
    }

    /// The object cannot be satisfied as it is: do not call again before it, a child or a lookup changes.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::of(Verdict::Invalid(message.into()))
    }

    /// With one more desired child. It serialises to a Kubernetes object with `apiVersion`, `kind` and
    /// `metadata.name`: [`crate::json!`], `serde_json::json!`, or a type of `k8s-openapi`.
    pub fn child(self, child: impl Serialize) -> Self {
        self.child_with(child, Options::default())
    }

    /// With labels and annotations on the object itself, for a plugin that decorates objects. `object` is the object with nothing but its
    /// `apiVersion`, `kind`, `metadata.name` and these; what a former answer has set and this one does not is taken off again. The same as
    /// [`child`](Self::child): it stands among the children.
    pub fn on_object(self, object: impl Serialize) -> Self {
        self.child(object)
    }

    /// With one more desired child, which the host treats as `options` say.
    pub fn child_with(mut self, child: impl Serialize, options: Options) -> Self {
        if let Some(object) = self.serialize("a child", &child) {
            let after = options.after.iter().filter_map(|awaited| self.place_of(awaited)).collect();
            self.raw.children.get_or_insert_default().push(raw::Child {
                object,
                handling: options.handling,
                after,
                on_immutable: options.on_immutable,
                on_removal: options.on_removal,
                unmanaged_fields: options.unmanaged,
            });
        }
        self
    }

    /// With no children at all: the host removes those that exist.
    pub fn no_children(mut self) -> Self {
        self.raw.children = Some(Vec::new());
        self
    }

    /// Says that most of the object's children are removed on purpose. Without it, the host holds such removals back.
    pub fn removes_many(mut self) -> Self {
        self.raw.removes_many = true;
        self
    }

    /// With these status fields; `conditions` and `observedGeneration` are the host's.
    pub fn status(mut self, status: impl Serialize) -> Self {
        self.raw.status = self.serialize("the status", &status);
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

    /// With one more measurement.
    pub fn measurement(mut self, measurement: Measurement) -> Self {
        self.raw.measurements.push(measurement);
        self
    }

    /// With another call after so many seconds, at the latest.
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
        Self { raw, error: None }
    }

    /// The place of the child `KIND/NAME` among those returned so far.
    fn place_of(&mut self, awaited: &str) -> Option<u32> {
        let is_it = |child: &raw::Child| {
            let found = ObjectRef::of(&child.object);
            awaited.split_once('/').is_some_and(|(kind, name)| found.kind == kind && found.name == name)
        };
        let place = self.raw.children.iter().flatten().position(is_it).and_then(|place| u32::try_from(place).ok());
        if place.is_none() {
            self.error.get_or_insert(Error::order(awaited));
        }
        place
    }

    fn serialize(&mut self, what: &'static str, value: &impl Serialize) -> Option<raw::Json> {
        serde_json::to_string(value).map_err(|error| self.error.get_or_insert(Error::write(what, &error))).ok()
    }
}

/// What crosses to the host. A response with a part that could not be written changes nothing in the cluster.
impl From<Response> for raw::Response {
    fn from(response: Response) -> Self {
        match response.error {
            None => response.raw,
            Some(error) => Response::from(error).raw,
        }
    }
}

/// The verdict that fits: what a cluster administrator must settle waits, everything else is retried with backoff.
impl From<Error> for Response {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::LookupDenied(_) => Self::wait("LookupDenied", message, 60),
            Error::KindNotInstalled(_) => Self::wait("KindNotInstalled", message, 300),
            _ => Self::retry(message),
        }
    }
}

/// A response made by hand.
impl From<raw::Response> for Response {
    fn from(raw: raw::Response) -> Self {
        Self { raw, error: None }
    }
}

impl<E: Into<Response>> From<Result<Response, E>> for Response {
    fn from(result: Result<Response, E>) -> Self {
        result.unwrap_or_else(Into::into)
    }
}
