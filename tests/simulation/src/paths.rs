//! The paths of kinds and objects, and the hosts' own namespace.

/// The hosts' own namespace.
pub const OWN_NAMESPACE: &str = "pilothouse";

/// The name of the Lease of the host that leads.
pub const LEASE: &str = "pilothouse";

/// The paths of one kind.
#[derive(Clone, Debug)]
pub struct KindPath(String);

impl KindPath {
    /// The paths of a kind in a namespace; of a kind without namespaces if that is empty.
    pub fn of(api_version: &str, kind: &str, namespace: &str) -> Self {
        let root = if api_version.contains('/') { "apis" } else { "api" };
        let scope = if namespace.is_empty() { String::new() } else { format!("namespaces/{namespace}/") };
        Self(format!("/{root}/{api_version}/{scope}{}s", kind.to_lowercase()))
    }

    /// The path of all objects.
    pub fn all(&self) -> String {
        self.0.clone()
    }

    /// The path of one object.
    pub fn named(&self, name: &str) -> String {
        format!("{}/{name}", self.0)
    }
}
