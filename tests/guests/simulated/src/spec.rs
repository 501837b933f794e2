//! The spec of the objects: which children there shall be. Values only.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::scope::{Place, Scope};

/// The spec of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    /// The children.
    pub children: Vec<ChildSpec>,
    /// The ConfigMap that is looked up; its value goes into every child.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub follows: Option<String>,
    /// Whether the object is ready only when its Deployments are available and its Jobs have completed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub awaits: bool,
    /// After how many seconds the plugin wants to be called again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requeue_after: Option<u32>,
}

impl Spec {
    /// The spec of an object; an empty one where it has none that makes sense.
    pub fn of(object: &Value) -> Self {
        object.get("spec").and_then(|spec| serde_json::from_value(spec.clone()).ok()).unwrap_or_default()
    }
}

/// One child.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChildSpec {
    /// Its kind.
    pub kind: ChildKind,
    /// What its name has after the object's name and a hyphen.
    pub name: String,
    /// Its namespace, if the object has none.
    #[serde(default, skip_serializing_if = "Place::is_home")]
    pub place: Place,
    /// A number that its fields depend on.
    pub value: u8,
    /// Whether it has one field more than it needs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub extra: bool,
    /// Whether it stays when it is no longer wanted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep: bool,
}

impl ChildSpec {
    /// The child's name.
    pub fn full_name(&self, object: &Value) -> String {
        format!("{}-{}", object["metadata"]["name"].as_str().unwrap_or_default(), self.name)
    }

    /// Whether this is the child's name.
    pub fn is_named(&self, object: &Value, name: &str) -> bool {
        let owner = object["metadata"]["name"].as_str().unwrap_or_default();
        let rest = name.strip_prefix(owner).and_then(|rest| rest.strip_prefix('-'));
        rest.is_some_and(|rest| *rest == *self.name)
    }

    /// Whether both are one child. The namespaces of objects in a namespace do not differ.
    pub fn is_same(&self, other: &Self) -> bool {
        let place = |child: &Self| child.namespace(Scope::Cluster);
        (self.kind, &self.name, place(self)) == (other.kind, &other.name, place(other))
    }

    /// The child's namespace; empty for none.
    pub fn namespace(&self, scope: Scope) -> &'static str {
        self.kind.namespace(scope, self.place)
    }
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
    /// `batch/v1` `Job`.
    Job,
    /// A custom kind, `simulation.pilothouse.dev/v1` `Widget`.
    Widget,
    /// A custom kind without namespaces, `simulation.pilothouse.dev/v1` `ClusterWidget`. Only objects without a namespace can have
    /// such children.
    ClusterWidget,
}

impl ChildKind {
    const ALL: [Self; 7] =
        [Self::ConfigMap, Self::Secret, Self::Service, Self::Deployment, Self::Job, Self::Widget, Self::ClusterWidget];

    /// All kinds of children that objects of a scope can have.
    pub fn all(scope: Scope) -> &'static [Self] {
        let (in_namespaces, _) = Self::ALL.split_at(6);
        match scope {
            Scope::Namespaced => in_namespaces,
            Scope::Cluster => &Self::ALL,
        }
    }

    /// The namespace of a child; empty for none.
    pub fn namespace(self, scope: Scope, place: Place) -> &'static str {
        match (self, scope) {
            (Self::ClusterWidget, _) => "",
            (_, Scope::Namespaced) => Place::Home.namespace(),
            (_, Scope::Cluster) => place.namespace(),
        }
    }

    /// The kind's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
            Self::Service => "Service",
            Self::Deployment => "Deployment",
            Self::Job => "Job",
            Self::Widget => "Widget",
            Self::ClusterWidget => "ClusterWidget",
        }
    }

    /// How the API server calls its objects.
    pub fn resource(self) -> &'static str {
        match self {
            Self::ConfigMap => "configmaps",
            Self::Secret => "secrets",
            Self::Service => "services",
            Self::Deployment => "deployments.apps",
            Self::Job => "jobs.batch",
            Self::Widget => "widgets.simulation.pilothouse.dev",
            Self::ClusterWidget => "clusterwidgets.simulation.pilothouse.dev",
        }
    }

    /// The kind's group and version.
    pub fn api_version(self) -> &'static str {
        match self {
            Self::ConfigMap | Self::Secret | Self::Service => "v1",
            Self::Deployment => "apps/v1",
            Self::Job => "batch/v1",
            Self::Widget | Self::ClusterWidget => "simulation.pilothouse.dev/v1",
        }
    }
}
