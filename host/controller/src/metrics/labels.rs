//! The sets of labels that metrics have. Their values are plugin names and fixed words.

use prometheus_client::encoding::EncodeLabelSet;

/// A plugin, as controller-runtime names a controller.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Controller {
    controller: String,
}

impl Controller {
    pub(super) fn new(plugin: &str) -> Self {
        Self { controller: plugin.to_owned() }
    }
}

/// A plugin's reconciles of one result.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Reconciled {
    controller: String,
    result: &'static str,
}

impl Reconciled {
    pub(super) fn new(plugin: &str, result: &'static str) -> Self {
        Self { controller: plugin.to_owned(), result }
    }
}

/// A plugin's queue. Name and controller are the same, as in controller-runtime.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Queued {
    name: String,
    controller: String,
}

impl Queued {
    pub(super) fn new(plugin: &str) -> Self {
        Self { name: plugin.to_owned(), controller: plugin.to_owned() }
    }
}

/// A plugin.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Plugin {
    plugin: String,
}

impl Plugin {
    pub(super) fn new(plugin: &str) -> Self {
        Self { plugin: plugin.to_owned() }
    }
}

/// A plugin's calls of one outcome.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Called {
    plugin: String,
    outcome: &'static str,
}

impl Called {
    pub(super) fn new(plugin: &str, outcome: &'static str) -> Self {
        Self { plugin: plugin.to_owned(), outcome }
    }
}

/// A plugin's faults of one reason.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Told {
    plugin: String,
    reason: String,
}

impl Told {
    pub(super) fn new(plugin: &str, reason: &str) -> Self {
        Self { plugin: plugin.to_owned(), reason: reason.to_owned() }
    }
}

/// A version of a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Version {
    plugin: String,
    version: String,
}

impl Version {
    pub(super) fn new(plugin: &str, version: &str) -> Self {
        Self { plugin: plugin.to_owned(), version: version.to_owned() }
    }
}

/// A Lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Lease {
    name: String,
}

impl Lease {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned() }
    }
}

/// An answer of the API server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Answered {
    pub(super) code: String,
    pub(super) method: String,
    pub(super) host: String,
}

/// A build of the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Build {
    pub(super) version: &'static str,
}
