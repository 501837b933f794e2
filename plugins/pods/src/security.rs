//! Security contexts. It leaves no container more rights than it needs, and never guesses the user of an image.

use crate::api::SecurityContext;
use serde_json::{Value, json};

/// What becomes of the Linux capabilities of a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capabilities {
    /// The container keeps those of its runtime.
    Kept,
    /// It loses all.
    Dropped,
}

/// The security context of a Pod.
pub fn of_pod(given: Option<&SecurityContext>) -> Value {
    let mut context = json!(given.cloned().unwrap_or_default());
    context["seccompProfile"] = json!({ "type": "RuntimeDefault" });
    context
}

/// The security context of a container.
pub fn of_container(capabilities: Capabilities) -> Value {
    let mut context = json!({ "allowPrivilegeEscalation": false });
    if capabilities == Capabilities::Dropped {
        context["capabilities"] = json!({ "drop": ["ALL"] });
    }
    context
}
