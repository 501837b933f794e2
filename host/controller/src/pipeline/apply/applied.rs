//! The result of applying a plan. Values only.

use pilothouse_engine::Fingerprint;

use super::{
    failure::{Failure, FailureReason},
    refused::RefusedWrite,
};
use crate::pipeline::plan::{Delete, Recreation, Write, WriteCause};

/// The result of applying a plan.
#[derive(Debug, Default)]
pub struct Applied {
    /// The successful writes.
    pub written: Vec<Written>,
    /// The successful deletes.
    pub deleted: Vec<Delete>,
    /// Children that must be deleted and created again. The next round plans that.
    pub recreations: Vec<Recreation>,
    /// The failures. After a failed write no delete is tried.
    pub failures: Vec<Failure>,
    /// The failed writes that the API server refuses because of their content.
    pub refused: Vec<RefusedWrite>,
}

impl Applied {
    /// Whether the only failures are outdated caches, which have been refreshed since.
    pub fn is_outdated(&self) -> bool {
        let is_outdated = |failure: &Failure| failure.reason == FailureReason::Outdated;
        !self.failures.is_empty() && self.failures.iter().all(is_outdated)
    }

    /// Whether a child was created that had to wait for others.
    pub fn has_created_in_order(&self) -> bool {
        let is_in_order = |write: &Write| write.cause == WriteCause::Missing && !write.child.after.is_empty();
        self.written.iter().any(|written| is_in_order(&written.write))
    }

    /// How many children were created.
    pub fn created(&self) -> usize {
        self.written.iter().filter(|written| written.write.cause == WriteCause::Missing && written.has_changed).count()
    }

    /// Whether anything changed in the cluster.
    pub fn has_changed_anything(&self) -> bool {
        self.written.iter().any(|written| written.has_changed) || !self.deleted.is_empty()
    }
}

/// A successful write.
#[derive(Debug)]
pub struct Written {
    /// The write.
    pub write: Write,
    /// Whether it changed the child. An apply without effect keeps the resource version.
    pub has_changed: bool,
    /// The fingerprint of the child after the write.
    pub state: Fingerprint,
}
