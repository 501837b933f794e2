//! The labels, annotations, field managers and finalizers of the host. Names only.

/// What the keys of the host's own labels and annotations begin with. Plugins may not set them.
pub const PREFIX: &str = "pilothouse.dev/";

/// Label: the plugin that returned the child. The watches of children select by it.
pub const PLUGIN: &str = "pilothouse.dev/plugin";

/// Label: the plugin that decorates the child's owner without owning it. Objects have children of several plugins only where all but one
/// are decorators, so it tells theirs apart.
pub const DECORATOR: &str = "pilothouse.dev/decorator";

/// Label: the UID of the object that the child belongs to. It stays when the owner reference is removed.
pub const OWNER_UID: &str = "pilothouse.dev/owner-uid";

/// Label: who manages the child, unless the plugin sets it (Kubernetes' recommended labels).
pub const MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// Value of [`MANAGED_BY`].
pub const HOST: &str = "pilothouse";

/// Annotation: the fingerprint of what the plugin returned. It shows that a field is no longer returned, without keeping managed
/// fields in memory.
pub const APPLIED: &str = "pilothouse.dev/applied";

/// Annotation: the version of the plugin that wrote the child last. Not part of what is compared: a version that returns the same writes
/// nothing, and leaves the mark of the one before.
pub const MADE_BY: &str = "pilothouse.dev/plugin-version";

/// Annotation: which object this is, in the notation of [`identity`]. An object with the identity of another one is a copy that
/// somebody else made, and not a child.
pub const IDENTITY: &str = "pilothouse.dev/identity";

/// Annotation on an object: existing objects without a controller that the host may adopt as its children, as `KIND/NAME`,
/// or `KIND/NAMESPACE/NAME` where they are in another namespace, separated by commas.
pub const ADOPT: &str = "pilothouse.dev/adopt";

/// Annotation on an object: `true` lets its plugin leave it and its children as they are.
pub const SUSPENDED: &str = "pilothouse.dev/suspended";

/// Annotation: JSON pointers of the fields that are left to other managers, separated by spaces.
pub const UNMANAGED: &str = "pilothouse.dev/unmanaged";

/// Annotation: what happens to the child when it is no longer wanted, if it is not deleted.
pub const ON_REMOVAL: &str = "pilothouse.dev/on-removal";

/// Annotation: the child's place in the order of its object's children, from 1 on; it is missing for those that wait for no other.
/// Children go in the reverse order, also when their plugin is gone, so the place has to be on them.
pub const ORDER: &str = "pilothouse.dev/order";

/// Label of what belongs to a `Plugin`: the pieces of its component, its account, the roles and their bindings.
pub const COMPONENT_OF: &str = "pilothouse.dev/component-of";

/// Annotation on an object: the version of a plugin that may delete the children that the guard against mass deletion holds back.
/// The message about them names the version.
pub const ALLOW_REMOVAL: &str = "pilothouse.dev/allow-removal";

/// Value of [`ON_REMOVAL`]: the child stays. It has no owner reference, because garbage collection would delete it.
pub const KEEP: &str = "keep";

/// The value of [`IDENTITY`]: `Deployment.apps/namespace/name`, `ConfigMap/namespace/name`, `Namespace/name`.
pub fn identity(kind: &str, group: &str, object: &impl std::fmt::Display) -> String {
    let dot = if group.is_empty() { "" } else { "." };
    format!("{kind}{dot}{group}/{object}")
}

/// What the field managers of plugins begin with.
pub const FIELD_MANAGERS: &str = "pilothouse/";

/// The field manager of a plugin. It stays below the API server's limit of 128 bytes, because a plugin's name is a DNS label.
pub fn field_manager(plugin: &str) -> String {
    format!("{FIELD_MANAGERS}{plugin}")
}

/// The field manager that keeps the value of an unmanaged field until another manager sets it.
pub const HANDOVER_MANAGER: &str = "pilothouse-handover";

/// What the annotation of [`decoration`] ends with.
pub const DECORATION: &str = ".decorator.pilothouse.dev/keys";

/// Annotation on an object that is decorated: the labels and annotations that a decorator has put on it.
pub fn decoration(plugin: &str) -> String {
    format!("{plugin}{DECORATION}")
}

/// Whether a key of a label or an annotation is the host's own.
pub fn is_hosts_own(key: &str) -> bool {
    key.starts_with(PREFIX) || key.ends_with(DECORATION)
}

/// The name of a plugin where an object names its manager.
pub fn manager(plugin: &str) -> String {
    format!("pilothouse.dev/{plugin}")
}

/// The finalizer of objects whose children are in an order. Under a domain of its own, so that it is the finalizer of no plugin.
pub const ORDERED_DELETION: &str = "host.pilothouse.dev/ordered-deletion";

/// The finalizer of a plugin that exports one.
pub fn finalizer(plugin: &str) -> String {
    format!("pilothouse.dev/{plugin}")
}

/// Label of the Leases of hosts that share the work, with the name of the Lease of the one that leads, or a digest of it. That one has the
/// label, too, as long as the work is shared.
pub const HOST_LEASE: &str = "pilothouse.dev/host-lease";

/// Label of the Leases of plugins that hosts share, with the same value.
pub const PLUGIN_LEASE: &str = "pilothouse.dev/plugin-lease";

/// Annotation on a Lease of a plugin: the `Plugin` that its holder works for.
pub const PLUGIN_OBJECT: &str = "pilothouse.dev/plugin-object";

/// Annotation on the Lease of a host: what others have to know of it ([`HOST_LEASE`]), as JSON.
pub const HOST_STATE: &str = "pilothouse.dev/host-state";
