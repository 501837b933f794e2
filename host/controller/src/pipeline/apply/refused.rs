//! Writes that the API server refused for what is in them. The same write would be refused again, so it is not tried before its
//! time, however often the object is looked at meanwhile. Pure.

use std::{collections::BTreeMap, time::Duration};

use tokio::time::Instant;

use super::failure::{Failure, FailureReason};
use crate::pipeline::plan::{Plan, Write};

/// Names a write: what is applied, and over what.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WriteId {
    digest: String,
    /// UID and generation of the child that is there.
    live: Option<(Box<str>, i64)>,
}

impl WriteId {
    /// Names a planned write.
    pub(super) fn of(write: &Write) -> Self {
        let live = write.cause.live().map(|live| (live.uid.clone(), live.generation));
        Self { digest: write.child.digest.clone(), live }
    }
}

/// A write that was refused.
#[derive(Clone, Debug)]
pub struct RefusedWrite {
    /// The write.
    pub(super) id: WriteId,
    /// What the API server said.
    pub(super) failure: Failure,
}

impl RefusedWrite {
    /// A write that failed, if that is because of what is in it.
    pub(super) fn of(id: WriteId, failure: &Failure) -> Option<Self> {
        let is_refused = matches!(failure.reason, FailureReason::ChildInvalid | FailureReason::ImmutableField);
        is_refused.then(|| Self { id, failure: failure.clone() })
    }
}

/// The refused writes of one object.
#[derive(Clone, Debug, Default)]
pub struct RefusedWrites(BTreeMap<WriteId, Refusal>);

#[derive(Clone, Debug)]
struct Refusal {
    failure: Failure,
    until: Instant,
}

impl RefusedWrites {
    /// Takes the writes out of a plan whose time has not come, and tells what the API server said of them.
    pub fn hold(&mut self, plan: &mut Plan, now: Instant) -> Vec<Failure> {
        self.0.retain(|_, refusal| refusal.until > now);
        let mut held = Vec::new();
        if self.0.is_empty() {
            return held;
        }
        plan.writes.retain(|write| match self.0.get(&WriteId::of(write)) {
            Some(refusal) => {
                held.push(refusal.failure.clone());
                false
            }
            None => true,
        });
        held
    }

    /// Remembers writes that were just refused, for so long.
    pub fn remember(&mut self, refused: Vec<RefusedWrite>, pause: Duration, now: Instant) {
        let refusals =
            refused.into_iter().map(|RefusedWrite { id, failure }| (id, Refusal { failure, until: now + pause }));
        self.0.extend(refusals);
    }
}
