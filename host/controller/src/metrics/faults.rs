//! Counts the faults that the host reports on objects, by reason. Decides nothing about them.

use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use super::labels::FaultLabels;

/// The reasons whose counters start at zero: all Warning Events in `docs/conditions.md`. A reason of a plugin is never a label,
/// because plugins could create any number of them.
const REASONS: [&str; 27] = [
    "NameConflict",
    "MetadataConflict",
    "Forbidden",
    "StatusForbidden",
    "ChildInvalid",
    "ImmutableField",
    "ChildKindNotInstalled",
    "ChildrenUnknown",
    "LookupDenied",
    "StatusSubresourceMissing",
    "StatusInvalid",
    "StatusFieldsDropped",
    "CleanupAbandoned",
    "ChildKindNotDeclared",
    "ChildScopeNotAllowed",
    "DuplicateChild",
    "TooManyChildren",
    "PluginContractViolated",
    "PluginTrapped",
    "PluginDeadlineExceeded",
    "PluginMemoryLimitExceeded",
    "PluginOutputLimitExceeded",
    "DeletesHeldBack",
    "Invalid",
    "HostMemoryUsed",
    "LookupMemoryUsed",
    "AccountUnavailable",
];

/// A counter for each plugin and reason.
pub struct Faults(Family<FaultLabels, Counter>);

impl Faults {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let faults = Self(Family::default());
        registry.register("pilothouse_faults", "Faults told on objects, by reason", faults.0.clone());
        faults
    }

    /// Creates a plugin's counters at zero, so that the first fault is an increase.
    pub(super) fn initialize(&self, plugin: &str) {
        for reason in REASONS {
            drop(self.0.get_or_create(&FaultLabels::new(plugin, reason)));
        }
    }
}

impl Faults {
    /// Counts a fault that was reported on an object.
    pub fn count(&self, plugin: &str, reason: &str) {
        self.0.get_or_create(&FaultLabels::new(plugin, reason)).inc();
    }
}
