//! The spec of the simulated objects: which children there shall be. Values only.

use serde::{Deserialize, Serialize};

/// The spec of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    /// The children.
    pub children: Vec<ChildSpec>,
    /// The ConfigMap that is looked up; its value goes into every child.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub follows: Option<String>,
    /// Whether the object is ready only when its Deployments are available.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub awaits: bool,
    /// After how many seconds the plugin wants to be called again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requeue_after: Option<u32>,
}

/// One child.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChildSpec {
    /// Its kind.
    pub kind: ChildKind,
    /// What its name has after the object's name and a hyphen.
    pub name: String,
    /// A number that its fields depend on.
    pub value: u8,
    /// Whether it has one field more than it needs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub extra: bool,
    /// Whether it stays when it is no longer wanted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep: bool,
}

/// The kinds of children.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum ChildKind {
    /// `v1` `ConfigMap`.
    ConfigMap,
    /// `v1` `Secret`.
    Secret,
    /// `v1` `Service`.
    Service,
    /// `apps/v1` `Deployment`.
    Deployment,
    /// A custom kind, `simulation.pilothouse.dev/v1` `Widget`.
    Widget,
}

impl ChildKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [Self::ConfigMap, Self::Secret, Self::Service, Self::Deployment, Self::Widget];

    /// The kind's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
            Self::Service => "Service",
            Self::Deployment => "Deployment",
            Self::Widget => "Widget",
        }
    }

    /// How the API server calls its objects.
    pub fn resource(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmaps",
            Self::Secret => "secrets",
            Self::Service => "services",
            Self::Deployment => "deployments.apps",
            Self::Widget => "widgets.simulation.pilothouse.dev",
        }
    }

    /// The kind's group and version.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::ConfigMap | Self::Secret | Self::Service => "v1",
            Self::Deployment => "apps/v1",
            Self::Widget => "simulation.pilothouse.dev/v1",
        }
    }
}
