//! Remembers writes that the API server refused because of their content. The same write would be refused again, so it is held back
//! until the retry delay is over, however often the object is reconciled in the meantime. Pure.

use std::time::Duration;

use pilothouse_engine::contract::ImmutablePolicy;
use tokio::time::Instant;

use super::failure::{Failure, FailureReason};
use crate::pipeline::plan::{Plan, Write};

/// The identity of a write: the applied body, its policy and the live child.
#[derive(Clone, Debug, PartialEq)]
pub struct WriteId {
    digest: String,
    on_immutable: ImmutablePolicy,
    /// The live child; none for a create.
    live: Option<LiveId>,
}

/// The identity of a live child's spec: a change of its status does not make a refused write valid.
#[derive(Clone, Debug, PartialEq)]
struct LiveId {
    uid: Box<str>,
    generation: i64,
}

impl WriteId {
    /// The identity of a planned write.
    pub(super) fn of(write: &Write) -> Self {
        let live = write.cause.live().map(|live| LiveId { uid: live.uid.clone(), generation: live.generation });
        Self { digest: write.child.digest.clone(), on_immutable: write.child.on_immutable, live }
    }
}

/// A refused write.
#[derive(Clone, Debug)]
pub struct RefusedWrite {
    /// The write.
    pub(super) id: WriteId,
    /// The API server's answer.
    pub(super) failure: Failure,
}

impl RefusedWrite {
    /// A failed write, if its content is the cause.
    pub(super) fn of(id: WriteId, failure: &Failure) -> Option<Self> {
        // Other failures, such as a conflict or an exceeded quota, can pass without a change of the write.
        let is_refused = matches!(failure.reason, FailureReason::ChildInvalid | FailureReason::ImmutableField);
        is_refused.then(|| Self { id, failure: failure.clone() })
    }
}

/// The refused writes of one object.
#[derive(Clone, Debug, Default)]
pub struct RefusedWrites(Vec<Refusal>);

#[derive(Clone, Debug)]
struct Refusal {
    write: RefusedWrite,
    /// Until when the write is not tried again.
    until: Instant,
}

impl RefusedWrites {
    /// Removes the writes from a plan that are still held back, and returns their failures.
    pub fn hold(&mut self, plan: &mut Plan, now: Instant) -> Vec<Failure> {
        self.0.retain(|refusal| refusal.until > now);
        let mut held = Vec::new();
        if self.0.is_empty() {
            return held;
        }
        plan.writes.retain(|write| {
            let id = WriteId::of(write);
            let refusal = self.0.iter().find(|refusal| refusal.write.id == id);
            held.extend(refusal.map(|refusal| refusal.write.failure.clone()));
            refusal.is_none()
        });
        held
    }

    /// Holds writes back that were just refused, for the time of `pause`.
    pub fn remember(&mut self, refused: Vec<RefusedWrite>, pause: Duration, now: Instant) {
        self.0.extend(refused.into_iter().map(|write| Refusal { write, until: now + pause }));
    }
}
