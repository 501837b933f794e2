//! How the host treats a child beyond its fields. The child itself is whatever serialises to a Kubernetes object.

use crate::{ImmutablePolicy, RemovalPolicy};

/// How the host treats one child. The default suits most children.
#[derive(Clone, Debug)]
pub struct Options {
    /// What the host does when the API server refuses a change of an immutable field. Default: report it.
    pub on_immutable: ImmutablePolicy,
    /// What happens to the child once the plugin no longer returns it. Default: the host deletes it.
    pub on_removal: RemovalPolicy,
    /// JSON pointers of fields that others set, such as `/spec/replicas` under an autoscaler.
    pub unmanaged: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { on_immutable: ImmutablePolicy::Fail, on_removal: RemovalPolicy::Delete, unmanaged: Vec::new() }
    }
}
