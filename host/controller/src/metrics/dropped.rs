//! What plugins have said beyond their limits, so that nobody was told: Events and log lines. Drops nothing itself.

use prometheus_client::{
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

use super::labels::PluginLabels;

/// Counters for each plugin.
pub struct Dropped {
    events: Family<PluginLabels, Counter>,
    log_lines: Family<PluginLabels, Counter>,
}

impl Dropped {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let dropped = Self { events: Family::default(), log_lines: Family::default() };
        let events = "Events that were not written, for there were too many on the object or of the plugin";
        registry.register("pilothouse_events_dropped", events, dropped.events.clone());
        let lines = "Log lines of the plugin that were not written, for there were too many";
        registry.register("pilothouse_log_lines_dropped", lines, dropped.log_lines.clone());
        dropped
    }

    /// Creates a plugin's counters at zero.
    pub(super) fn initialize(&self, plugin: &str) {
        for family in [&self.events, &self.log_lines] {
            drop(family.get_or_create(&PluginLabels::new(plugin)));
        }
    }

    /// Removes a plugin's counters.
    pub(super) fn remove(&self, plugin: &str) {
        for family in [&self.events, &self.log_lines] {
            family.remove(&PluginLabels::new(plugin));
        }
    }

    /// A call wrote so many log lines too many.
    pub(super) fn log_lines(&self, plugin: &str, lines: usize) {
        if let (1.., Some(counter)) = (lines, self.log_lines.get(&PluginLabels::new(plugin))) {
            counter.inc_by(lines.try_into().unwrap_or(u64::MAX));
        }
    }
}

impl Dropped {
    /// An Event was dropped.
    pub fn event(&self, plugin: &str) {
        if let Some(counter) = self.events.get(&PluginLabels::new(plugin)) {
            counter.inc();
        }
    }
}
