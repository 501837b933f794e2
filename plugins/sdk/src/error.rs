//! What can go wrong between the contract's JSON text and a plugin's types. It is not for what a plugin itself finds wrong
//! with an object: that is [`crate::Response::invalid`].

use crate::Kind;
use crate::parse::ParseError;

/// Why a value could not be read or written. With `?` in a reconcile function it becomes a verdict.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An observed child does not fit the type it is read into.
    #[error("cannot read child {kind} {name}: {reason}")]
    Child {
        /// The child's kind.
        kind: &'static str,
        /// The child's name.
        name: String,
        /// What does not fit, with the path of the field.
        reason: String,
    },
    /// An object from a lookup does not fit the type it is read into.
    #[error("cannot read the {kind} that was looked up: {reason}")]
    Lookup {
        /// The kind looked up.
        kind: &'static str,
        /// What does not fit, with the path of the field.
        reason: String,
    },
    /// The plugin's configuration does not fit the type it is read into.
    #[error("cannot read the plugin's configuration: {0}")]
    Config(String),
    /// The plugin may not look up this kind.
    #[error("{0}")]
    LookupDenied(String),
    /// The kind looked up is not installed in this cluster.
    #[error("{0}")]
    KindNotInstalled(String),
    /// The text of the host's clock is not a time.
    #[error("cannot read the time {0:?}")]
    Clock(String),
    /// A value that the plugin returns cannot be written as JSON.
    #[error("cannot write {what}: {reason}")]
    Write {
        /// A child, the status and so on.
        what: &'static str,
        /// What cannot be written.
        reason: String,
    },
    /// A child waits for one that is not returned before it.
    #[error("a child waits for {0}, which is not returned before it")]
    Order(String),
    /// A test's input cannot be used.
    #[error("{0}")]
    Test(String),
}

impl Error {
    /// A child of kind `K` that does not fit.
    pub(crate) fn child<K: Kind>(name: &str, error: &ParseError) -> Self {
        Self::Child { kind: K::KIND, name: name.to_owned(), reason: error.to_string() }
    }

    /// An object of kind `K` from a lookup that does not fit.
    pub(crate) fn lookup<K: Kind>(error: &ParseError) -> Self {
        Self::Lookup { kind: K::KIND, reason: error.to_string() }
    }

    /// A child that waits for this one, which was not returned yet.
    pub(crate) fn order(awaited: &str) -> Self {
        Self::Order(awaited.to_owned())
    }

    /// A value that cannot be written.
    pub(crate) fn write(what: &'static str, error: &serde_json::Error) -> Self {
        Self::Write { what, reason: error.to_string() }
    }
}
