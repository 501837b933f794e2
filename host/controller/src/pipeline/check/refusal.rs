//! The reasons for which a plugin's answer is refused. Values only.

use pilothouse_engine::contract::KindRef;

/// The most children one object may have: a training job of a thousand workers has a thousand Pods, and some a Service for each. How much
/// memory they take is bounded by the bytes of an answer.
pub const MAX_CHILDREN: usize = 2_500;

/// The reason for which an answer is refused as a whole.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// A value that is not valid: not JSON, of the wrong type, or against a rule of the API server.
    #[error("the plugin returned {what} that is not valid: {why}")]
    Malformed {
        /// The value.
        what: String,
        /// The violation.
        why: String,
    },
    /// A kind that the manifest does not declare.
    #[error(
        "the plugin returned a child of kind {0}, which its manifest does not declare; add it to the manifest's `children`"
    )]
    UndeclaredKind(KindRef),
    /// A kind that the cluster does not have.
    #[error("the plugin returned a child of kind {0}, which is not installed in this cluster; apply its CRD")]
    KindNotInstalled(KindRef),
    /// A child outside of the object's namespace.
    #[error(
        "the plugin returned {child} in namespace '{namespace}', but children live in their object's namespace; leave \
         metadata.namespace out"
    )]
    ForeignNamespace {
        /// The child.
        child: String,
        /// Its namespace.
        namespace: String,
    },
    /// A child in a namespace that the plugin does not work in.
    #[error(
        "the plugin returned {child} in namespace '{namespace}', which the spec.namespaces of its Plugin does not select"
    )]
    NamespaceNotServed {
        /// The child.
        child: String,
        /// Its namespace.
        namespace: String,
    },
    /// A cluster-scoped child of a namespaced object. Kubernetes does not allow such an owner reference.
    #[error(
        "the plugin returned {0}, which is cluster-scoped and cannot be owned by an object in a namespace; only a plugin of a \
         cluster-scoped kind has such children"
    )]
    ClusterScoped(String),
    /// The same child twice.
    #[error("the plugin returned {0} twice; give each child a name of its own")]
    Duplicate(String),
    /// Too many children.
    #[error(
        "the plugin returned {0} children; an object has at most {MAX_CHILDREN}, so spread them over several objects"
    )]
    TooMany(usize),
    /// A measurement that the manifest does not declare, or an invalid one.
    #[error("the plugin returned {0}")]
    Measurement(String),
    /// A condition that belongs to the host or is invalid.
    #[error("the plugin returned a condition that is not allowed: {0}")]
    Condition(String),
    /// An invalid Event.
    #[error("the plugin returned an Event that is not allowed: {0}")]
    Event(String),
}

/// A value that is not valid, with the violation.
pub(super) fn malformed(what: String, why: &str) -> Refusal {
    Refusal::Malformed { what, why: why.to_owned() }
}

impl Refusal {
    /// The CamelCase word for conditions and Events.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Malformed { .. } | Self::Measurement(_) | Self::Condition(_) | Self::Event(_) => {
                "PluginContractViolated"
            }
            Self::UndeclaredKind(_) => "ChildKindNotDeclared",
            Self::KindNotInstalled(_) => "ChildKindNotInstalled",
            Self::ForeignNamespace { .. } | Self::NamespaceNotServed { .. } | Self::ClusterScoped(_) => {
                "ChildScopeNotAllowed"
            }
            Self::Duplicate(_) => "DuplicateChild",
            Self::TooMany(_) => "TooManyChildren",
        }
    }
}
