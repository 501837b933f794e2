//! The failures of writes, with the reasons that conditions and Events show. The reason follows from the status code and the causes
//! in the API server's answer, never from the text of its message.

use std::fmt;

use kube::core::{Status, response::StatusCause};
use pilothouse_engine::contract::KindRef;
use serde_json::Value;

use crate::{errors::chain, object::ObjectRef};

/// A write that failed.
#[derive(Clone, Debug, PartialEq)]
pub struct Failure {
    /// The reason.
    pub reason: FailureReason,
    /// A sentence, for people.
    pub message: String,
    /// The child that could not be written; none if it was something else.
    pub child: Option<Box<FailedChild>>,
}

/// A child that could not be written.
#[derive(Clone, Debug, PartialEq)]
pub struct FailedChild {
    /// Its kind.
    pub kind: KindRef,
    /// Its name.
    pub name: ObjectRef,
}

/// The reason of a failure, as conditions and Events show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FailureReason {
    /// The API server did not answer.
    ApiServerUnavailable,
    /// The API server answered with an error of its own.
    ApiServerError,
    /// The API server is overloaded (429).
    TooManyRequests,
    /// Somebody else wrote at the same time (409).
    Conflict,
    /// The object to write does not exist any more (404).
    NotFound,
    /// The cache was behind. It has been refreshed since.
    Outdated,
    /// A child of a deleted object of the same name must be collected first.
    AwaitingDeletion,
    /// The namespace is being deleted and accepts no new objects.
    NamespaceTerminating,
    /// The host has the permission, but admission refuses the write: a quota, a policy, or a webhook.
    AdmissionDenied,
    /// The host lacks the permission.
    Forbidden,
    /// The child is invalid.
    ChildInvalid,
    /// The write changes an immutable field.
    ImmutableField,
    /// The name belongs to an object that is not ours.
    NameConflict,
    /// A label or an annotation of an object that is not the plugin's own has a value that somebody else has set.
    MetadataConflict,
    /// The kind is not installed in the cluster.
    ChildKindNotInstalled,
    /// The host lacks the permission to write the status.
    StatusForbidden,
    /// The status is invalid.
    StatusInvalid,
    /// The kind has no status subresource.
    StatusSubresourceMissing,
}

/// Whether a failure passes by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureClass {
    /// The next try probably succeeds. It is reported only if it lasts.
    Transient,
    /// It passes by itself, but may take a while. It is reported at once.
    Progressing,
    /// Somebody has to change something.
    Permanent,
}

impl FailureReason {
    /// The CamelCase word for conditions and Events.
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
            Self::MetadataConflict => "MetadataConflict",
            Self::ChildKindNotInstalled => "ChildKindNotInstalled",
            Self::StatusForbidden => "StatusForbidden",
            Self::StatusInvalid => "StatusInvalid",
            Self::StatusSubresourceMissing => "StatusSubresourceMissing",
        }
    }

    /// Whether it passes by itself.
    pub fn class(self) -> FailureClass {
        match self {
            Self::ApiServerUnavailable
            | Self::ApiServerError
            | Self::TooManyRequests
            | Self::Conflict
            | Self::NotFound
            | Self::Outdated => FailureClass::Transient,
            Self::AwaitingDeletion | Self::NamespaceTerminating | Self::AdmissionDenied => FailureClass::Progressing,
            Self::Forbidden
            | Self::ChildInvalid
            | Self::ImmutableField
            | Self::NameConflict
            | Self::MetadataConflict
            | Self::ChildKindNotInstalled
            | Self::StatusForbidden
            | Self::StatusInvalid
            | Self::StatusSubresourceMissing => FailureClass::Permanent,
        }
    }
}

impl fmt::Display for FailureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Failure {
    /// A failure with its message.
    pub fn new(reason: FailureReason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), child: None }
    }

    /// The same, about a child.
    pub fn of_child(self, kind: &KindRef, name: &ObjectRef) -> Self {
        let child = FailedChild { kind: kind.clone(), name: name.clone() };
        Self { child: Some(child.into()), ..self }
    }

    /// The failure that an error of a request means. `verb` (`apply`, `delete`) and `what` are for the message.
    pub fn of(error: &kube::Error, verb: &str, what: &str) -> Self {
        let kube::Error::Api(status) = error else {
            let message = format!("failed to {verb} {what}: {}", chain(error));
            return Self::new(FailureReason::ApiServerUnavailable, message);
        };
        Self::new(reason_of(status), format!("failed to {verb} {what}: {}", status.message))
    }

    /// The failure that an error of a delete means. A delete has no content that could be invalid, so only admission, such as a
    /// policy, refuses it as if it had.
    pub(super) fn of_delete(error: &kube::Error, what: &str) -> Self {
        let failure = Self::of(error, "delete", what);
        match failure.reason {
            FailureReason::ChildInvalid => Self { reason: FailureReason::AdmissionDenied, ..failure },
            _ => failure,
        }
    }
}

/// The reason of an API error of a write.
fn reason_of(status: &Status) -> FailureReason {
    match status.code {
        // Before the codes: the API server answers 403 here, as to a missing permission, and only the cause tells the difference.
        _ if is_caused_by(status, NAMESPACE_TERMINATING) => FailureReason::NamespaceTerminating,
        401 | 403 => FailureReason::Forbidden,
        404 => FailureReason::NotFound,
        409 => FailureReason::Conflict,
        _ if is_by_admission(status) => FailureReason::AdmissionDenied,
        400 | 422 => FailureReason::ChildInvalid,
        429 => FailureReason::TooManyRequests,
        _ => FailureReason::ApiServerError,
    }
}

/// The cause in the API server's answer if the namespace is being deleted (`NamespaceTerminatingCause` in k8s.io/api/core/v1).
const NAMESPACE_TERMINATING: &str = "NamespaceTerminating";

/// The type of a cause about a field that may not be there, or not be changed (`field.ErrorTypeForbidden` in
/// k8s.io/apimachinery/pkg/util/validation).
pub(super) const FIELD_FORBIDDEN: &str = "FieldValueForbidden";

/// Whether a 422 is that of a policy or of a webhook: each cause of the API server's own validation has a type.
pub(super) fn is_by_admission(status: &Status) -> bool {
    status.code == 422 && causes(status).all(|cause| cause.reason.is_empty())
}

/// The causes in the API server's answer.
pub(super) fn causes(status: &Status) -> impl Iterator<Item = &StatusCause> {
    status.details.iter().flat_map(|details| &details.causes)
}

/// Whether the answer has a cause of this type.
fn is_caused_by(status: &Status, cause: &str) -> bool {
    causes(status).any(|found| found.reason == cause)
}

/// Whether the answer has causes, and all of them can belong to an immutable field. Other causes are about the value itself, such as a
/// duplicate, or about a field that remains from before and contradicts the desired ones: a Deployment's `rollingUpdate` beside
/// another type of strategy. An answer without a cause is that of a webhook, or of anything else that is not the validation: it says
/// nothing about a field, and nothing is deleted because of it.
pub(super) fn may_be_immutable(status: &Status, desired: &Value) -> bool {
    let is_of_change = |cause: &StatusCause| match cause.reason.as_str() {
        "FieldValueInvalid" => true,
        FIELD_FORBIDDEN => has_field(desired, &cause.field),
        _ => false,
    };
    causes(status).next().is_some() && causes(status).all(is_of_change)
}

/// Whether an object has a field, as a cause names it: `spec.template.spec.containers[0].image`. The index is that of the merged
/// list, so any element of the object's own list will do.
fn has_field(object: &Value, path: &str) -> bool {
    let (step, rest) = path.split_once('.').unwrap_or((path, ""));
    let (name, is_element) = step.split_once('[').map_or((step, false), |(name, _)| (name, true));
    // Go's `field.Path` prints `<nil>` if an error is about the object as a whole.
    let Some(value) = object.get(name) else { return path.is_empty() || path == "<nil>" };
    match value {
        _ if rest.is_empty() => true,
        Value::Array(elements) if is_element => elements.iter().any(|element| has_field(element, rest)),
        _ => has_field(value, rest),
    }
}

/// Whether the answer has a cause for this field.
pub fn is_about_field(status: &Status, field: &str) -> bool {
    causes(status).any(|found| found.field == field)
}

/// Whether a write with a UID and a resource version found no object, a newer state of it (both 409) or another object of the same
/// name (422).
pub(super) fn is_another_object(status: &Status) -> bool {
    status.code == 409 || (status.code == 422 && is_about_field(status, "metadata.uid"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn status(code: u16, causes: serde_json::Value) -> kube::Result<Status, serde_json::Error> {
        serde_json::from_value(json!({"code": code, "message": "in its words", "details": {"causes": causes}}))
    }

    #[test]
    fn a_field_that_is_left_over_is_not_immutable() -> Result<(), serde_json::Error> {
        let desired = json!({"spec": {"strategy": {"type": "Recreate"}, "template": {"spec": {
            "containers": [{"image": "a"}], "volumes": [{"name": "a", "emptyDir": {}}],
        }}}});
        for (reason, field, expected) in [
            ("FieldValueForbidden", "spec", true),
            ("FieldValueForbidden", "spec.template.spec.containers[0].image", true),
            ("FieldValueForbidden", "spec.strategy.rollingUpdate", false),
            ("FieldValueForbidden", "spec.template.spec.volumes[0].hostPath", false),
            ("FieldValueInvalid", "spec.clusterIPs[0]", true),
            ("FieldValueDuplicate", "spec", false),
        ] {
            let refused = status(422, json!([{"reason": reason, "message": "", "field": field}]))?;
            assert_eq!(may_be_immutable(&refused, &desired), expected, "{reason} {field}");
        }
        Ok(())
    }

    #[test]
    fn a_delete_is_never_invalid() -> Result<(), serde_json::Error> {
        for (code, reason) in [(422, FailureReason::AdmissionDenied), (403, FailureReason::Forbidden)] {
            let failure = Failure::of_delete(&kube::Error::Api(Box::new(status(code, json!([]))?)), "Service 'web'");
            assert_eq!(failure.reason, reason);
            assert_eq!(failure.message, "failed to delete Service 'web': in its words");
        }
        Ok(())
    }

    #[test]
    fn the_reason_follows_from_status_code_and_causes() -> Result<(), serde_json::Error> {
        let terminating = json!([{"reason": NAMESPACE_TERMINATING, "message": "", "field": ""}]);
        for (code, causes, reason, class) in [
            (403, json!([]), FailureReason::Forbidden, FailureClass::Permanent),
            (403, terminating, FailureReason::NamespaceTerminating, FailureClass::Progressing),
            (404, json!([]), FailureReason::NotFound, FailureClass::Transient),
            (409, json!([]), FailureReason::Conflict, FailureClass::Transient),
            (422, json!([]), FailureReason::AdmissionDenied, FailureClass::Progressing),
            (422, json!([{"message": "a policy's"}]), FailureReason::AdmissionDenied, FailureClass::Progressing),
            (422, json!([{"reason": "FieldValueRequired"}]), FailureReason::ChildInvalid, FailureClass::Permanent),
            (400, json!([]), FailureReason::ChildInvalid, FailureClass::Permanent),
            (429, json!([]), FailureReason::TooManyRequests, FailureClass::Transient),
            (503, json!([]), FailureReason::ApiServerError, FailureClass::Transient),
        ] {
            let found = reason_of(&status(code, causes)?);
            assert_eq!((found, found.class()), (reason, class), "{code}");
        }
        Ok(())
    }
}
