//! How a guarded write can fail, and what that means for whoever reads the object's conditions.

use super::failure::{Failure, FailureReason};
use crate::pipeline::plan::Recreation;

/// How a guarded write can fail.
pub(super) enum WriteError {
    /// As the API server says.
    Api(kube::Error),
    /// The API server refuses the child itself, in these words.
    Invalid(String),
    /// The name is taken; why.
    Taken(String),
    /// It belongs to a deleted object of the same name; garbage collection takes it away.
    Inherited,
    /// Object or child is not the one that was known; look again.
    Vanished,
    /// A field cannot change and the plugin wants that reported.
    Immutable(String),
    /// A field cannot change; the child has to be created anew.
    Recreate(Recreation),
}

impl From<kube::Error> for WriteError {
    fn from(error: kube::Error) -> Self {
        Self::Api(error)
    }
}

impl WriteError {
    /// What it means for whoever reads the object's conditions.
    pub(super) fn into_failure(self, what: &str) -> Failure {
        match self {
            Self::Api(error) => Failure::of(&error, "apply", what),
            Self::Invalid(why) => Failure::new(FailureReason::ChildInvalid, format!("failed to apply {what}: {why}")),
            Self::Taken(why) => {
                let message = format!("{what} exists, is left alone, and {why}");
                Failure::new(FailureReason::NameConflict, message)
            }
            Self::Inherited => {
                let message = "belongs to a deleted object of the same name; waiting until it is collected";
                Failure::new(FailureReason::AwaitingDeletion, format!("{what} {message}"))
            }
            Self::Vanished | Self::Recreate(_) => {
                Failure::new(FailureReason::Outdated, format!("{what} is not as it was last known"))
            }
            Self::Immutable(why) => {
                Failure::new(FailureReason::ImmutableField, format!("failed to apply {what}: {why}"))
            }
        }
    }
}
