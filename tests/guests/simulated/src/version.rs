//! The versions of the plugin. They differ in the kinds of children that they return, and in a label.

use serde::{Deserialize, Serialize};

use crate::spec::{ChildKind, ChildSpec, Spec};

/// A version of the plugin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Version {
    /// Has all kinds of children.
    #[default]
    First,
    /// Has no Secrets.
    WithoutSecrets,
    /// Has a finalizer.
    Finalizing,
}

impl Version {
    /// All versions.
    pub const ALL: [Self; 3] = [Self::First, Self::WithoutSecrets, Self::Finalizing];

    /// The version in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::WithoutSecrets => "without-secrets",
            Self::Finalizing => "finalizing",
        }
    }

    /// Whether it declares a kind of children.
    pub fn declares(self, kind: ChildKind) -> bool {
        self != Self::WithoutSecrets || kind != ChildKind::Secret
    }

    /// The children that it returns. A child that is there twice is returned once.
    pub fn wanted(self, spec: &Spec) -> Vec<&ChildSpec> {
        let mut wanted: Vec<&ChildSpec> = Vec::new();
        for child in spec.children.iter().filter(|child| self.declares(child.kind)) {
            if !wanted.iter().any(|known| known.is_same(child)) {
                wanted.push(child);
            }
        }
        wanted
    }
}
