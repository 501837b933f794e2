//! The errors of a guarded write, and the failures that conditions and Events show for them.

use super::failure::{Failure, FailureReason};
use crate::pipeline::plan::Recreation;

/// The error of a guarded write.
pub(super) enum WriteError {
    /// Another error of the API server or of the connection.
    Api(kube::Error),
    /// The child is invalid, with the API server's message.
    Invalid(String),
    /// The name is taken, with the reason.
    NameTaken(String),
    /// The existing object belongs to a deleted object of the same name. Garbage collection will delete it.
    OwnedByPredecessor,
    /// The existing object is being deleted.
    BeingDeleted,
    /// The cache was behind and is refreshed now.
    Outdated,
    /// The write changes an immutable field, and the plugin's policy is to fail. With the API server's message.
    Immutable(String),
    /// The write changes an immutable field, and the plugin's policy is to recreate the child.
    Recreate(Recreation),
}

impl From<kube::Error> for WriteError {
    fn from(error: kube::Error) -> Self {
        Self::Api(error)
    }
}

impl WriteError {
    /// The failure to report. `what` is the child, for the message.
    pub(super) fn into_failure(self, what: &str) -> Failure {
        match self {
            Self::Api(error) => Failure::of(&error, "apply", what),
            Self::Invalid(why) => Failure::new(FailureReason::ChildInvalid, format!("failed to apply {what}: {why}")),
            Self::NameTaken(why) => {
                let message = format!("{what} exists, is left alone, and {why}");
                Failure::new(FailureReason::NameConflict, message)
            }
            Self::OwnedByPredecessor => {
                let message = "belongs to a deleted object of the same name; waiting until it is collected";
                Failure::new(FailureReason::AwaitingDeletion, format!("{what} {message}"))
            }
            Self::BeingDeleted => {
                let message = "is being deleted; waiting until it is gone";
                Failure::new(FailureReason::AwaitingDeletion, format!("{what} {message}"))
            }
            // A recreation gets here only where the child changed between its dry run and its deletion, and the next round begins anew.
            Self::Outdated | Self::Recreate(_) => {
                Failure::new(FailureReason::Outdated, format!("{what} is not as it was last known"))
            }
            Self::Immutable(why) => {
                Failure::new(FailureReason::ImmutableField, format!("failed to apply {what}: {why}"))
            }
        }
    }
}
