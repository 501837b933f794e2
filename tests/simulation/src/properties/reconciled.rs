//! Which objects the plugins reconcile, by their kinds, and who controls a child. Looks at nothing else.

use serde_json::Value;

use crate::plugin::{app, scope::Scope};

/// Whether objects of a kind are reconciled by one of the plugins.
pub(super) fn is_reconciled(kind: &Value) -> bool {
    Scope::is_reconciled(kind) || *kind == app::KIND
}

/// The owner that controls a child.
pub(super) fn controller(child: &Value) -> Option<&Value> {
    let owners = child["metadata"]["ownerReferences"].as_array().into_iter().flatten();
    owners.into_iter().find(|owner| owner["controller"] == true)
}
