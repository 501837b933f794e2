//! Whether the objects live in a namespace or belong to the whole cluster, and the namespaces of the children. Names only.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The group and version of the objects.
pub const API_VERSION: &str = "simulation.pilothouse.dev/v1";

/// Where the objects live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Scope {
    /// In [`Place::Home`], as all of their children.
    #[default]
    Namespaced,
    /// In no namespace. Their children live in two namespaces, or in none either.
    Cluster,
}

/// The namespace of a child.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Place {
    /// The namespace of the objects that have one.
    #[default]
    Home,
    /// Another one.
    Away,
}

impl Scope {
    /// The scope of an object, by its kind.
    pub fn of(object: &Value) -> Self {
        if object["kind"] == Self::Cluster.kind() { Self::Cluster } else { Self::Namespaced }
    }

    /// Whether objects of a kind are reconciled by the plugin of any scope.
    pub fn is_reconciled(kind: &Value) -> bool {
        *kind == Self::Namespaced.kind() || *kind == Self::Cluster.kind()
    }

    /// The kind of the objects.
    pub fn kind(self) -> &'static str {
        match self {
            Self::Namespaced => "Simulated",
            Self::Cluster => "ClusterSimulated",
        }
    }

    /// The namespace of the objects; empty for none.
    pub fn namespace(self) -> &'static str {
        match self {
            Self::Namespaced => Place::Home.namespace(),
            Self::Cluster => "",
        }
    }
}

impl Place {
    /// All places.
    pub const ALL: [Self; 2] = [Self::Home, Self::Away];

    /// The name of the namespace.
    pub fn namespace(self) -> &'static str {
        match self {
            Self::Home => "home",
            Self::Away => "away",
        }
    }

    /// Whether it is [`Place::Home`].
    pub fn is_home(&self) -> bool {
        *self == Self::Home
    }
}
