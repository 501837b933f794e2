//! How far the children of one kind are, as their plugin says it: expressions in CEL over the child. For kinds about which the host's own
//! rules say too little or something else.

use serde::{Deserialize, Serialize};

use crate::{Expression, KindRef};

/// How far the children of one kind are. In JSON the fields of the kind stand beside the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Flat", into = "Flat")]
pub struct ChildReadiness {
    /// The kind, one of the manifest's `children`.
    pub kind: KindRef,
    /// Whether a child is as its spec says. Until it is true, and where it has no value, the child is in progress.
    pub current: Expression,
    /// Whether a child has failed. It is asked first.
    pub failed: Option<Expression>,
    /// What to say of a child that is not current.
    pub message: Option<Expression>,
}

/// The form in JSON. Flattening by serde would hide unknown fields.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Flat {
    api_version: String,
    kind: String,
    current: Expression,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    failed: Option<Expression>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    message: Option<Expression>,
}

impl ChildReadiness {
    /// What is wrong with its expressions, in words; none if nothing is.
    pub fn fault(&self) -> Option<String> {
        let all =
            [("current", Some(&self.current)), ("failed", self.failed.as_ref()), ("message", self.message.as_ref())];
        all.into_iter().find_map(|(name, expression)| {
            let fault = expression?.fault()?;
            Some(format!("`{name}` of `{}` is no expression in CEL that can be evaluated: {fault}", self.kind))
        })
    }
}

impl From<Flat> for ChildReadiness {
    fn from(flat: Flat) -> Self {
        let Flat { api_version, kind, current, failed, message } = flat;
        Self { kind: KindRef::new(api_version, kind), current, failed, message }
    }
}

impl From<ChildReadiness> for Flat {
    fn from(readiness: ChildReadiness) -> Self {
        let ChildReadiness { kind: KindRef { api_version, kind }, current, failed, message } = readiness;
        Self { api_version, kind, current, failed, message }
    }
}
