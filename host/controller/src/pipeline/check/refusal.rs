//! Why a plugin's answer is refused, in words for people and one word for machines.

use pilothouse_engine::contract::KindRef;

/// The most children one object may have.
pub(super) const MAX_CHILDREN: usize = 1_000;

/// Why a response is refused as a whole. Nothing of it is applied.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Refusal {
    /// Text that should be JSON is not, or is JSON of another shape.
    #[error("the plugin returned {what} that is not valid: {why}")]
    Malformed {
        /// What it is.
        what: String,
        /// What is wrong.
        why: String,
    },
    /// A kind that the manifest does not declare.
    #[error("the plugin returned a child of kind {0}, which its manifest does not declare")]
    UndeclaredKind(KindRef),
    /// A kind that the cluster does not have.
    #[error("the plugin returned a child of kind {0}, which is not installed in this cluster")]
    KindNotInstalled(KindRef),
    /// A child outside of the object's namespace.
    #[error("the plugin returned {child} in namespace '{namespace}', but children live in their object's namespace")]
    ForeignNamespace {
        /// The child.
        child: String,
        /// Where it would be.
        namespace: String,
    },
    /// A cluster-scoped child of an object in a namespace: owner references cannot cross that way.
    #[error("the plugin returned {0}, which is cluster-scoped and cannot be owned by an object in a namespace")]
    ClusterScoped(String),
    /// The same child twice.
    #[error("the plugin returned {0} twice")]
    Duplicate(String),
    /// More children than an object may have.
    #[error("the plugin returned {0} children; an object has at most {MAX_CHILDREN}")]
    TooMany(usize),
    /// A sample of no metric that the manifest declares.
    #[error("the plugin returned {0}")]
    Measurement(String),
    /// A condition that is the host's or has no name or reason.
    #[error("the plugin returned a condition that is not allowed: {0}")]
    Condition(String),
}

impl Refusal {
    /// One CamelCase word for conditions and events.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Malformed { .. } | Self::Measurement(_) | Self::Condition(_) => "PluginContractViolated",
            Self::UndeclaredKind(_) => "ChildKindNotDeclared",
            Self::KindNotInstalled(_) => "ChildKindNotInstalled",
            Self::ForeignNamespace { .. } | Self::ClusterScoped(_) => "ChildScopeNotAllowed",
            Self::Duplicate(_) => "DuplicateChild",
            Self::TooMany(_) => "TooManyChildren",
        }
    }
}
