//! The forms in which a policy of the cluster (a ValidatingAdmissionPolicy) refuses a write.

use serde::{Deserialize, Serialize};

use super::{
    admission::Admitted,
    error::{About, ApiError, Cause},
};

/// How a policy refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Denial {
    /// With 403: the policy gives `Forbidden` as its reason.
    #[default]
    Forbidden,
    /// With 422: the policy gives no reason.
    Invalid,
}

impl Denial {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Forbidden, Self::Invalid];

    /// The reason, as a policy gives it.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Self::Forbidden => Some("Forbidden"),
            Self::Invalid => None,
        }
    }

    /// The error with which a policy of this name refuses a write.
    pub fn of(self, write: &Admitted<'_>, policy: &str) -> ApiError {
        let names = &write.kind.names;
        let name = write.object["metadata"]["name"].as_str().unwrap_or_default();
        let about = About { group: &names.group, resource: &names.plural, name };
        let why = format!("ValidatingAdmissionPolicy '{policy}' with binding '{policy}' denied request: it is denied");
        let refused = ApiError::forbidden(about, &why).caused_by(Cause::new("", "", why));
        match self {
            Self::Forbidden => refused,
            Self::Invalid => ApiError { code: 422, reason: "Invalid", ..refused },
        }
    }
}
