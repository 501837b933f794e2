//! What can go wrong with a write, and what that means for whoever reads the object's conditions. The class of a failure follows
//! from status codes and the causes that the API server names, never from its words.

use std::fmt;

use kube::core::{Status, response::StatusCause};

use crate::errors::chain;

/// A write that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// What went wrong.
    pub reason: FailureReason,
    /// A sentence for people.
    pub message: String,
}

/// What went wrong, under the names that conditions and Events show.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureReason {
    /// The API server did not answer.
    ApiServerUnavailable,
    /// The API server answered with an error of its own.
    ApiServerError,
    /// The API server has too much to do (429).
    TooManyRequests,
    /// Somebody else wrote at the same time (409).
    Conflict,
    /// What was to be written is gone (404).
    NotFound,
    /// What was known proved wrong, and has been read anew.
    Outdated,
    /// A child of a deleted object of the same name has to go first.
    AwaitingDeletion,
    /// The namespace is being deleted, and takes nothing new.
    NamespaceTerminating,
    /// The host may do it, but admission refuses it: a quota, a policy, a webhook.
    AdmissionDenied,
    /// The host may not do it.
    Forbidden,
    /// The API server refuses the child as it is.
    ChildInvalid,
    /// A field cannot change.
    ImmutableField,
    /// The name is taken by an object that is not ours.
    NameConflict,
    /// The cluster does not have the kind.
    ChildKindNotInstalled,
    /// The host may not write the status.
    StatusForbidden,
    /// The API server refuses the status as it is.
    StatusInvalid,
    /// The kind has no status subresource.
    StatusSubresourceMissing,
}

/// Who has to do something about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outlook {
    /// Nobody: the next try probably succeeds. Nothing to tell unless it lasts.
    Transient,
    /// Nobody, but it takes its time.
    Progressing,
    /// Somebody has to change something.
    NeedsChange,
}

impl FailureReason {
    /// The word for conditions and Events.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ApiServerUnavailable => "ApiServerUnavailable",
            Self::ApiServerError => "ApiServerError",
            Self::TooManyRequests => "TooManyRequests",
            Self::Conflict => "Conflict",
            Self::NotFound => "NotFound",
            Self::Outdated => "Outdated",
            Self::AwaitingDeletion => "AwaitingDeletion",
            Self::NamespaceTerminating => "NamespaceTerminating",
            Self::AdmissionDenied => "AdmissionDenied",
            Self::Forbidden => "Forbidden",
            Self::ChildInvalid => "ChildInvalid",
            Self::ImmutableField => "ImmutableField",
            Self::NameConflict => "NameConflict",
            Self::ChildKindNotInstalled => "ChildKindNotInstalled",
            Self::StatusForbidden => "StatusForbidden",
            Self::StatusInvalid => "StatusInvalid",
            Self::StatusSubresourceMissing => "StatusSubresourceMissing",
        }
    }

    /// Who has to do something about it.
    pub fn outlook(self) -> Outlook {
        match self {
            Self::ApiServerUnavailable
            | Self::ApiServerError
            | Self::TooManyRequests
            | Self::Conflict
            | Self::NotFound
            | Self::Outdated => Outlook::Transient,
            Self::AwaitingDeletion | Self::NamespaceTerminating | Self::AdmissionDenied => Outlook::Progressing,
            Self::Forbidden
            | Self::ChildInvalid
            | Self::ImmutableField
            | Self::NameConflict
            | Self::ChildKindNotInstalled
            | Self::StatusForbidden
            | Self::StatusInvalid
            | Self::StatusSubresourceMissing => Outlook::NeedsChange,
        }
    }
}

impl fmt::Display for FailureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Failure {
    /// A failure for a reason.
    pub fn new(reason: FailureReason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into() }
    }

    /// What an error of a request means that was to do something (`apply`, `delete`) with an object.
    pub fn of(error: &kube::Error, verb: &str, what: &str) -> Self {
        let kube::Error::Api(status) = error else {
            let message = format!("failed to {verb} {what}: {}", chain(error));
            return Self::new(FailureReason::ApiServerUnavailable, message);
        };
        Self::new(reason_of(status), format!("failed to {verb} {what}: {}", status.message))
    }
}

/// The class of an API error of a write.
fn reason_of(status: &Status) -> FailureReason {
    match status.code {
        _ if is_caused_by(status, NAMESPACE_TERMINATING) => FailureReason::NamespaceTerminating,
        401 | 403 => FailureReason::Forbidden,
        404 => FailureReason::NotFound,
        409 => FailureReason::Conflict,
        400 | 422 => FailureReason::ChildInvalid,
        429 => FailureReason::TooManyRequests,
        _ => FailureReason::ApiServerError,
    }
}

/// The cause that the API server's admission names where a namespace is being deleted (`NamespaceTerminatingCause`).
const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";

/// Whether the API server names a cause of this type.
fn is_caused_by(status: &Status, cause: &str) -> bool {
    status.details.iter().flat_map(|details| &details.causes).any(|found| found.reason == cause)
}

/// Whether all causes that the API server names can be those of a change that a field does not take. Others, such as a duplicate,
/// are about the value itself.
pub(super) fn may_be_immutable(status: &Status) -> bool {
    let is_of_change =
        |cause: &StatusCause| matches!(cause.reason.as_str(), "FieldValueInvalid" | "FieldValueForbidden");
    status.details.iter().flat_map(|details| &details.causes).all(is_of_change)
}

/// Whether the API server names a cause that is about this field.
pub(super) fn is_about_field(status: &Status, field: &str) -> bool {
    status.details.iter().flat_map(|details| &details.causes).any(|found| found.field == field)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(code: u16, causes: serde_json::Value) -> kube::Result<Status, serde_json::Error> {
        serde_json::from_value(json!({"code": code, "message": "in its words", "details": {"causes": causes}}))
    }

    #[test]
    fn the_class_follows_from_code_and_causes() -> Result<(), serde_json::Error> {
        let terminating = json!([{"reason": NAMESPACE_TERMINATING, "message": "", "field": ""}]);
        for (code, causes, reason, outlook) in [
            (403, json!([]), FailureReason::Forbidden, Outlook::NeedsChange),
            (403, terminating, FailureReason::NamespaceTerminating, Outlook::Progressing),
            (404, json!([]), FailureReason::NotFound, Outlook::Transient),
            (409, json!([]), FailureReason::Conflict, Outlook::Transient),
            (422, json!([]), FailureReason::ChildInvalid, Outlook::NeedsChange),
            (429, json!([]), FailureReason::TooManyRequests, Outlook::Transient),
            (503, json!([]), FailureReason::ApiServerError, Outlook::Transient),
        ] {
            let found = reason_of(&status(code, causes)?);
            assert_eq!((found, found.outlook()), (reason, outlook), "{code}");
        }
        Ok(())
    }
}
