//! The account that a plugin works with. Values only.

use std::{fmt, sync::Arc};

/// The account of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The name of the service account.
    pub name: Arc<str>,
    /// The namespace that it is in.
    pub namespace: AccountNamespace,
}

/// Where the account of a plugin is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AccountNamespace {
    /// In this namespace, for all objects.
    Fixed(Arc<str>),
    /// In the namespace of each object: what happens for it happens with the rights of its own namespace.
    OfObject,
}

impl Account {
    /// Whether there is none for an object in this namespace: a cluster-scoped object has no namespace.
    pub fn is_missing_for(&self, namespace: &str) -> bool {
        namespace.is_empty() && self.namespace == AccountNamespace::OfObject
    }

    /// The service account for an object in this namespace.
    pub fn for_namespace(&self, namespace: &Arc<str>) -> ServiceAccount {
        let namespace = match &self.namespace {
            AccountNamespace::Fixed(fixed) => fixed,
            AccountNamespace::OfObject => namespace,
        };
        ServiceAccount { namespace: namespace.clone(), name: self.name.clone() }
    }
}

/// A service account.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServiceAccount {
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl ServiceAccount {
    /// The name of the user that the API server knows it by.
    pub fn user(&self) -> String {
        format!("system:serviceaccount:{}:{}", self.namespace, self.name)
    }
}

impl fmt::Display for ServiceAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ServiceAccount '{}/{}'", self.namespace, self.name)
    }
}
