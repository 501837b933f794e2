//! How the host treats a child beyond its fields. The child itself is whatever serialises to a Kubernetes object.

use crate::{ImmutablePolicy, RemovalPolicy};

/// How the host treats one child; the default suits most.
#[derive(Clone, Debug)]
pub struct Options {
    /// What to do when a change is refused because a field cannot change. Default: report it.
    pub on_immutable: ImmutablePolicy,
    /// What becomes of the child once it is no longer returned. Default: it is deleted.
    pub on_removal: RemovalPolicy,
    /// JSON pointers of fields that others set, such as `/spec/replicas` under an autoscaler.
    pub unmanaged: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { on_immutable: ImmutablePolicy::Fail, on_removal: RemovalPolicy::Delete, unmanaged: Vec::new() }
    }
}
