//! Names a kind of Kubernetes object, as manifests and the contract do.

use serde::{Deserialize, Serialize};

/// Which kind of object: `apps/v1` and `Deployment`, or `v1` and `Service`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KindRef {
    /// Group and version; only the version for the core group.
    pub api_version: String,
    /// The kind, in CamelCase and singular.
    pub kind: String,
}

impl KindRef {
    /// Names a kind.
    pub fn new(api_version: impl Into<String>, kind: impl Into<String>) -> Self {
        Self { api_version: api_version.into(), kind: kind.into() }
    }

    /// The group; empty for the core group.
    pub fn group(&self) -> &str {
        self.api_version.split_once('/').map_or("", |(group, _)| group)
    }

    /// The version without its group.
    pub fn version(&self) -> &str {
        self.api_version.split_once('/').map_or(&self.api_version, |(_, version)| version)
    }

    /// Whether both name the same kind, whatever the version: an object has one identity in all versions of its kind.
    pub fn is_same_kind(&self, other: &Self) -> bool {
        self.kind == other.kind && self.group() == other.group()
    }

    /// Whether group, version and kind have the form that the API conventions give them.
    pub fn is_well_formed(&self) -> bool {
        let parts: Vec<_> = self.api_version.split('/').collect();
        // As the API server wants them: a group is a DNS subdomain, and a kind in lower case a DNS label.
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.');
        let word = |text: &str| (1..=253).contains(&text.len()) && text.bytes().all(is_part);
        parts.len() <= 2
            && parts.iter().all(|part| word(part))
            && self.version().starts_with('v')
            && word(&self.kind)
            && self.kind.len() <= 63
            && self.kind.starts_with(|c: char| c.is_ascii_uppercase())
    }
}

impl std::fmt::Display for KindRef {
    /// `apps/v1 Deployment`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.api_version, self.kind)
    }
}
