//! How arguments name a kind, whatever its version. Pure.

use pilothouse_engine::contract::KindRef;

/// `Secret`, or `RoleBinding.rbac.authorization.k8s.io`.
pub fn kind_name(kind: &KindRef) -> String {
    match kind.group() {
        "" => kind.kind.clone(),
        group => format!("{}.{group}", kind.kind),
    }
}
