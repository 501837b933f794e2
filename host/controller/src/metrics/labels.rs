//! The label sets of the metrics. Values are plugin names and fixed words, so the number of series is bounded.

use prometheus_client::encoding::EncodeLabelSet;

/// Labels of controller-runtime's metrics: the plugin is the controller.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ControllerLabels {
    controller: String,
}

impl ControllerLabels {
    pub(super) fn new(plugin: &str) -> Self {
        Self { controller: plugin.to_owned() }
    }
}

/// Labels of the reconciles of a plugin by result.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ReconcileLabels {
    controller: String,
    result: &'static str,
}

impl ReconcileLabels {
    pub(super) fn new(plugin: &str, result: &'static str) -> Self {
        Self { controller: plugin.to_owned(), result }
    }
}

/// Labels of a plugin's queue. Name and controller are equal, as in controller-runtime.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct QueueLabels {
    name: String,
    controller: String,
}

impl QueueLabels {
    pub(super) fn new(plugin: &str) -> Self {
        Self { name: plugin.to_owned(), controller: plugin.to_owned() }
    }
}

/// Labels of a plugin's metrics.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct PluginLabels {
    plugin: String,
}

impl PluginLabels {
    pub(super) fn new(plugin: &str) -> Self {
        Self { plugin: plugin.to_owned() }
    }
}

/// Labels of the calls of a plugin by outcome.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct CallLabels {
    plugin: String,
    outcome: &'static str,
}

impl CallLabels {
    pub(super) fn new(plugin: &str, outcome: &'static str) -> Self {
        Self { plugin: plugin.to_owned(), outcome }
    }
}

/// Labels of the faults of a plugin by reason.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct FaultLabels {
    plugin: String,
    reason: String,
}

impl FaultLabels {
    pub(super) fn new(plugin: &str, reason: &str) -> Self {
        Self { plugin: plugin.to_owned(), reason: reason.to_owned() }
    }
}

/// Labels of a version of a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct VersionLabels {
    plugin: String,
    version: String,
}

impl VersionLabels {
    pub(super) fn new(plugin: &str, version: &str) -> Self {
        Self { plugin: plugin.to_owned(), version: version.to_owned() }
    }
}

/// Labels of a new version of a plugin by its state.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct NewVersionLabels {
    plugin: String,
    state: &'static str,
}

impl NewVersionLabels {
    pub(super) fn new(plugin: &str, state: &'static str) -> Self {
        Self { plugin: plugin.to_owned(), state }
    }
}

/// Labels of a Lease.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct LeaseLabels {
    name: String,
}

impl LeaseLabels {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.to_owned() }
    }
}

/// Labels of the requests to the API server.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RequestLabels {
    pub(super) code: String,
    pub(super) method: String,
    pub(super) host: String,
}

/// Labels of a build of the host.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct BuildLabels {
    pub(super) version: &'static str,
}
