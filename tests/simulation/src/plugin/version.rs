//! The versions of the simulated plugin. They differ in the kinds of children that they declare, and in a label.

use pilothouse_engine::{ContractSeries, Manifest, contract::KindRef};
use serde::{Deserialize, Serialize};

use super::spec::ChildKind;

/// The name of the plugin.
pub const PLUGIN: &str = "simulated";

/// The kind that it reconciles.
pub const API_VERSION: &str = "simulation.pilothouse.dev/v1";

/// The kind that it reconciles.
pub const KIND: &str = "Simulated";

/// A version of the plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Version {
    /// Has all kinds of children.
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

    /// Its manifest.
    pub fn manifest(self) -> Manifest {
        let children = ChildKind::ALL.into_iter().filter(|kind| self.declares(*kind));
        Manifest {
            // Whether an object is ready is up to what this plugin says of its Deployments, and not up to all of its children.
            contract: ContractSeries::V0_1.version().to_owned(),
            children: children.map(|kind| KindRef::new(kind.api_version(), kind.as_str())).collect(),
            lookups: vec![KindRef::new("v1", "ConfigMap").into()],
            finalizes: self == Self::Finalizing,
            ..Manifest::new(PLUGIN, self.as_str(), KindRef::new(API_VERSION, KIND))
        }
    }
}
