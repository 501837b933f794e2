//! Faults that the host tells on objects, by the reason under which it tells them.

use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use super::{Metrics, labels::Told};

/// The reasons that begin at zero: all that `docs/conditions.md` marks as Warning Events. They are the host's words only.
const REASONS: [&str; 21] = [
    "NameConflict",
    "Forbidden",
    "StatusForbidden",
    "ChildInvalid",
    "ImmutableField",
    "ChildKindNotInstalled",
    "ChildrenUnknown",
    "LookupDenied",
    "StatusSubresourceMissing",
    "StatusInvalid",
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
];

/// A counter for each plugin and reason.
pub(super) struct Faults(Family<Told, Counter>);

impl Faults {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let faults = Self(Family::default());
        registry.register("pilothouse_faults", "Faults told on objects, by reason", faults.0.clone());
        faults
    }

    /// Everything begins at zero.
    pub(super) fn begin(&self, plugin: &str) {
        for reason in REASONS {
            drop(self.0.get_or_create(&Told::new(plugin, reason)));
        }
    }
}

impl Metrics {
    /// A fault is told on an object.
    pub fn fault(&self, plugin: &str, reason: &str) {
        self.faults.0.get_or_create(&Told::new(plugin, reason)).inc();
    }
}
