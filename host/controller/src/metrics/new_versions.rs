//! How new versions stand that do not answer all objects. Decides nothing about a version.

use prometheus_client::{
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

use super::labels::NewVersionLabels;
use crate::api::NewVersion;

/// The states that a new version can be in, each with its label.
const STATES: [(NewVersion, &str); 3] = [
    (NewVersion::AwaitingApproval, "awaiting_approval"),
    (NewVersion::Canary, "canary"),
    (NewVersion::RolledBack, "rolled_back"),
];

/// The metric of new versions.
pub struct NewVersions {
    states: Family<NewVersionLabels, Gauge>,
}

impl NewVersions {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let states = Family::default();
        let help = "1 for the state of a new version that does not answer all objects";
        registry.register("pilothouse_plugin_new_version", help, Family::clone(&states));
        Self { states }
    }

    /// The new version of a `Plugin` is in this state; none if it has no such version.
    pub fn is(&self, plugin: &str, present: Option<NewVersion>) {
        for (state, label) in STATES {
            let value = i64::from(present == Some(state));
            self.states.get_or_create(&NewVersionLabels::new(plugin, label)).set(value);
        }
    }

    /// A `Plugin` is gone.
    pub fn forget(&self, plugin: &str) {
        for (_, label) in STATES {
            self.states.remove(&NewVersionLabels::new(plugin, label));
        }
    }
}
