//! Counts the faults that the host reports on objects, by reason. Decides nothing about them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, MutexGuard, PoisonError},
};

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
pub struct Faults {
    counters: Family<FaultLabels, Counter>,
    /// The reasons that each plugin has.
    reasons: Mutex<BTreeMap<String, BTreeSet<String>>>,
}

impl Faults {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let faults = Self { counters: Family::default(), reasons: Mutex::default() };
        registry.register("pilothouse_faults", "Faults told on objects, by reason", faults.counters.clone());
        faults
    }

    /// Creates a plugin's counters at zero, so that the first fault is an increase.
    pub(super) fn initialize(&self, plugin: &str) {
        self.reasons().entry(plugin.to_owned()).or_default().extend(REASONS.map(str::to_owned));
        for reason in REASONS {
            drop(self.counters.get_or_create(&FaultLabels::new(plugin, reason)));
        }
    }

    /// Removes a plugin's counters.
    pub(super) fn remove(&self, plugin: &str) {
        for reason in self.reasons().remove(plugin).unwrap_or_default() {
            self.counters.remove(&FaultLabels::new(plugin, &reason));
        }
    }

    fn reasons(&self) -> MutexGuard<'_, BTreeMap<String, BTreeSet<String>>> {
        self.reasons.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Faults {
    /// Counts a fault that was reported on an object. Not of a plugin that is gone.
    pub fn count(&self, plugin: &str, reason: &str) {
        let mut all = self.reasons();
        let Some(reasons) = all.get_mut(plugin) else { return };
        if !reasons.contains(reason) {
            reasons.insert(reason.to_owned());
        }
        self.counters.get_or_create(&FaultLabels::new(plugin, reason)).inc();
    }
}
