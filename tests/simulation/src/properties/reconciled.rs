//! Which objects the plugins reconcile, by their kinds. Looks at nothing else.

use serde_json::Value;

use crate::plugin::{app, scope::Scope};

/// Whether objects of a kind are reconciled by one of the plugins.
pub(super) fn is_reconciled(kind: &Value) -> bool {
    Scope::is_reconciled(kind) || *kind == app::KIND
}
