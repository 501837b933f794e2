//! Where the objects of a simulation are: their namespaces, and the paths of their kinds.

/// The namespace of the objects.
pub const NAMESPACE: &str = "default";

/// The hosts' own namespace.
pub const OWN_NAMESPACE: &str = "pilothouse";

/// The paths of one kind.
#[derive(Clone, Debug)]
pub struct KindPath(String);

impl KindPath {
    /// The paths of a kind in [`NAMESPACE`].
    pub fn of(api_version: &str, kind: &str) -> Self {
        Self::below(api_version, &format!("namespaces/{NAMESPACE}/"), kind)
    }

    /// The paths of a cluster-scoped kind.
    pub fn cluster_scoped(api_version: &str, kind: &str) -> Self {
        Self::below(api_version, "", kind)
    }

    fn below(api_version: &str, scope: &str, kind: &str) -> Self {
        let root = if api_version.contains('/') { "apis" } else { "api" };
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
