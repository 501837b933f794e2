//! The versions of the plugin. They differ in the kinds of children that they return, in their order, in a label, and in what they say
//! of themselves.

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
    /// Leaves the condition `Ready` to the host.
    Plain,
    /// As [`Self::Plain`], and its children wait for each other.
    Ordered,
}

impl Version {
    /// All versions.
    pub const ALL: [Self; 5] = [Self::First, Self::WithoutSecrets, Self::Finalizing, Self::Plain, Self::Ordered];

    /// The version in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::First => "first",
            Self::WithoutSecrets => "without-secrets",
            Self::Finalizing => "finalizing",
            Self::Plain => "plain",
            Self::Ordered => "ordered",
        }
    }

    /// Whether it declares a kind of children.
    pub fn declares(self, kind: ChildKind) -> bool {
        self != Self::WithoutSecrets || kind != ChildKind::Secret
    }

    /// Whether it leaves the condition `Ready` to the host.
    pub fn leaves_ready(self) -> bool {
        matches!(self, Self::Plain | Self::Ordered)
    }

    /// Whether its children wait for each other.
    pub fn orders(self) -> bool {
        self == Self::Ordered
    }

    /// The places of the children that one waits for, by its own place among all that are returned: the one before it, or the first.
    pub fn awaited(self, child: &ChildSpec, place: usize) -> Option<usize> {
        let before = place.checked_sub(1).filter(|_| self.orders())?;
        Some(if child.value.is_multiple_of(2) { before } else { 0 })
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
