//! How the host treats a child beyond its fields. The child itself is whatever serialises to a Kubernetes object.

use crate::{Handling, ImmutablePolicy, RemovalPolicy};

/// How the host treats one child. The default suits most children.
#[derive(Clone, Debug)]
pub struct Options {
    /// Whether the host applies the child, only creates it, or keeps it as it is. Default: it applies it.
    pub handling: Handling,
    /// The children, as `KIND/NAME`, that must be as their specs say before this one is written: `Job/migrate`. They are
    /// returned before it.
    pub after: Vec<String>,
    /// What the host does when the API server refuses a change of an immutable field. Default: report it.
    pub on_immutable: ImmutablePolicy,
    /// What happens to the child once the plugin no longer returns it. Default: the host deletes it.
    pub on_removal: RemovalPolicy,
    /// JSON pointers of fields that others set, such as `/spec/replicas` under an autoscaler.
    pub unmanaged: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            handling: Handling::Apply,
            after: Vec::new(),
            on_immutable: ImmutablePolicy::Fail,
            on_removal: RemovalPolicy::Delete,
            unmanaged: Vec::new(),
        }
    }
}
