//! How a job has ended.

use crate::api::Phase;

/// How a job has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finish {
    /// `Succeeded` or `Failed`.
    pub phase: Phase,
    /// One CamelCase word.
    pub reason: &'static str,
    /// A sentence.
    pub message: String,
}

impl Finish {
    /// It has failed.
    pub fn failed(reason: &'static str, message: String) -> Self {
        Self { phase: Phase::Failed, reason, message }
    }

    /// It has succeeded.
    pub fn succeeded(message: String) -> Self {
        Self { phase: Phase::Succeeded, reason: "TrainingJobSucceeded", message }
    }
}
