//! What became of a plan. Values only.

use pilothouse_engine::Fingerprint;

use super::{
    failure::{Failure, FailureReason},
    refused::RefusedWrite,
};
use crate::pipeline::plan::{Delete, Recreation, Write};

/// What was done.
#[derive(Debug, Default)]
pub struct Applied {
    /// Writes that the API server took.
    pub written: Vec<Written>,
    /// Children that were deleted.
    pub deleted: Vec<Delete>,
    /// Children that have to be created anew: look again.
    pub recreations: Vec<Recreation>,
    /// What went wrong; deletes are not tried then.
    pub failures: Vec<Failure>,
    /// Those of the failed writes that the API server refuses for what is in them.
    pub refused: Vec<RefusedWrite>,
}

impl Applied {
    /// Whether all that went wrong is that what was known is not what is there, which is known now.
    pub fn is_outdated(&self) -> bool {
        let is_outdated = |failure: &Failure| failure.reason == FailureReason::Outdated;
        !self.failures.is_empty() && self.failures.iter().all(is_outdated)
    }

    /// Whether anything in the cluster is another than before.
    pub fn has_changed_anything(&self) -> bool {
        self.written.iter().any(|written| written.has_changed) || !self.deleted.is_empty()
    }
}

/// A write that the API server took.
#[derive(Debug)]
pub struct Written {
    /// The write.
    pub write: Write,
    /// Whether it changed the object: false where the API server found nothing to do.
    pub has_changed: bool,
    /// Names the state that it left.
    pub state: Fingerprint,
}
