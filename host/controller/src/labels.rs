//! The marks that the host leaves on children. Names only.

/// Label: the plugin that returned the child. Children are watched by it.
pub const PLUGIN: &str = "pilothouse.dev/plugin";

/// Label: UID of the object the child belongs to, also after its owner reference was removed.
pub const OWNER_UID: &str = "pilothouse.dev/owner-uid";

/// Label: who manages the child, where the plugin does not say (Kubernetes' recommended labels).
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// Value of [`MANAGED_BY`].
pub const HOST: &str = "pilothouse";

/// Annotation: fingerprint of what the plugin returned, so that a field that is no longer returned is noticed without
/// keeping managed fields in memory.
pub const APPLIED: &str = "pilothouse.dev/applied";

/// Annotation: which object this is, as [`identity`] writes it. What carries another's identity is a copy, and not ours.
pub const IDENTITY: &str = "pilothouse.dev/identity";

/// Annotation on an object: children that are there already and have no controller, which the host may take for it:
/// `KIND/NAME`, with commas between.
pub const ADOPT: &str = "pilothouse.dev/adopt";

/// Annotation: JSON pointers of the fields that are left to others, with spaces between.
pub const UNMANAGED: &str = "pilothouse.dev/unmanaged";

/// Annotation: what becomes of the child once it is no longer wanted, where that is not to be deleted.
pub const ON_REMOVAL: &str = "pilothouse.dev/on-removal";

/// Annotation on an object: the version of a plugin, as the message about it names it, that may remove the children which
/// the guard against mass deletion holds back.
pub const ALLOW_REMOVAL: &str = "pilothouse.dev/allow-removal";

/// Value of [`ON_REMOVAL`]: the child stays. It has no owner reference, for garbage collection would delete it.
pub const KEEP: &str = "keep";

/// The value of [`IDENTITY`]: `Deployment.apps/namespace/name`, `ConfigMap/namespace/name`, `Namespace/name`.
pub fn identity(kind: &str, group: &str, object: &impl std::fmt::Display) -> String {
    let dot = if group.is_empty() { "" } else { "." };
    format!("{kind}{dot}{group}/{object}")
}

/// The field manager of a plugin. At most 128 bytes, for a plugin's name is a DNS label.
pub fn field_manager(plugin: &str) -> String {
    format!("{HOST}/{plugin}")
}

/// The field manager that keeps the value of a field which is left to others, until one of them sets it.
pub const HANDOVER_MANAGER: &str = "pilothouse-handover";

/// Who a plugin is where objects name their manager.
pub fn manager(plugin: &str) -> String {
    format!("pilothouse.dev/{plugin}")
}

/// The finalizer of a plugin that exports one.
pub fn finalizer(plugin: &str) -> String {
    format!("pilothouse.dev/{plugin}")
}
