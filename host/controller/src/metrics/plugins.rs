//! The metrics of plugins: versions, loads, calls, missing rights and repaired drift. Loads and calls nothing. What happens after a plugin
//! is gone counts nowhere, so that its series do not come back.

use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use pilothouse_engine::{LoadStats, Outcome, Usage};
use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use super::labels::{CallLabels, PluginLabels, VersionLabels};

/// Buckets for the duration of a call: from ten microseconds to the longest deadline.
const CALL_SECONDS: [f64; 14] = [1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 5e-2, 0.1, 1.0, 10.0];

/// Buckets for the duration of a load: a millisecond from the cache, seconds for the compilation of a big component.
const LOAD_SECONDS: [f64; 12] = [1e-3, 2e-3, 5e-3, 1e-2, 5e-2, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 120.0];

/// Buckets for the memory of a call: from one WebAssembly page to the limit.
const MEMORY_BYTES: [f64; 12] = [
    65_536.0,
    131_072.0,
    262_144.0,
    524_288.0,
    1_048_576.0,
    2_097_152.0,
    4_194_304.0,
    8_388_608.0,
    16_777_216.0,
    33_554_432.0,
    67_108_864.0,
    134_217_728.0,
];

const OUTCOMES: [&str; 7] = ["response", "trap", "deadline", "memory_limit", "output_limit", "contract", "host_memory"];

/// Metrics of plugins.
pub struct Plugins {
    calls: Family<CallLabels, Counter>,
    call_seconds: Family<PluginLabels, Histogram>,
    memory: Family<PluginLabels, Histogram>,
    skipped: Family<PluginLabels, Counter>,
    loaded: Family<VersionLabels, Gauge>,
    load_seconds: Family<PluginLabels, Histogram>,
    compile_seconds: Family<PluginLabels, Histogram>,
    load_failures: Counter,
    kept: Gauge,
    may_keep: Gauge,
    swaps: Family<PluginLabels, Counter>,
    drift: Family<PluginLabels, Counter>,
    rights_missing: Family<PluginLabels, Gauge>,
    /// The active version of each plugin.
    versions: Mutex<HashMap<String, String>>,
}

impl Plugins {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let plugins = Self {
            calls: Family::default(),
            call_seconds: Family::new_with_constructor(|| Histogram::new(CALL_SECONDS)),
            memory: Family::new_with_constructor(|| Histogram::new(MEMORY_BYTES)),
            skipped: Family::default(),
            loaded: Family::default(),
            load_seconds: Family::new_with_constructor(|| Histogram::new(LOAD_SECONDS)),
            compile_seconds: Family::new_with_constructor(|| Histogram::new(LOAD_SECONDS)),
            load_failures: Counter::default(),
            kept: Gauge::default(),
            may_keep: Gauge::default(),
            swaps: Family::default(),
            drift: Family::default(),
            rights_missing: Family::default(),
            versions: Mutex::default(),
        };
        registry.register("pilothouse_plugin_calls", "Plugin calls by outcome", plugins.calls.clone());
        registry.register("pilothouse_plugin_call_seconds", "Time of a plugin call", plugins.call_seconds.clone());
        let memory = "The most linear memory that a plugin call had";
        registry.register("pilothouse_plugin_call_memory_peak_bytes", memory, plugins.memory.clone());
        let unasked = "Times that the plugin was left unasked, for no input had changed";
        registry.register("pilothouse_plugin_calls_skipped", unasked, plugins.skipped.clone());
        registry.register("pilothouse_plugin_loaded", "1 for the version at work", plugins.loaded.clone());
        let loading = "Time to load a plugin, compiling included";
        registry.register("pilothouse_plugin_load_seconds", loading, plugins.load_seconds.clone());
        let compiling = "Time to compile a plugin that was not in the cache";
        registry.register("pilothouse_plugin_compile_seconds", compiling, plugins.compile_seconds.clone());
        let failures = "Plugins that did not load";
        registry.register("pilothouse_plugin_load_failures", failures, plugins.load_failures.clone());
        let kept = "Memory that loaded plugins keep, called or not, estimated from their sizes";
        registry.register("pilothouse_plugin_memory_bytes", kept, plugins.kept.clone());
        let may_keep = "Memory that loaded plugins may keep together";
        registry.register("pilothouse_plugin_memory_limit_bytes", may_keep, plugins.may_keep.clone());
        let swaps = "Versions that took the place of another at work";
        registry.register("pilothouse_plugin_swaps", swaps, plugins.swaps.clone());
        let drift = "Children that somebody else had changed and that were repaired";
        registry.register("pilothouse_drift_repaired", drift, plugins.drift.clone());
        let missing = "Rights that the plugin needs and the host lacked when the version started";
        registry.register("pilothouse_rights_missing", missing, plugins.rights_missing.clone());
        plugins
    }

    /// A version became active. Creates the plugin's counters at zero.
    pub(super) fn version_started(&self, plugin: &str, version: &str) {
        for outcome in OUTCOMES {
            drop(self.calls.get_or_create(&CallLabels::new(plugin, outcome)));
        }
        let label = PluginLabels::new(plugin);
        for family in [&self.call_seconds, &self.memory, &self.load_seconds, &self.compile_seconds] {
            drop(family.get_or_create(&label));
        }
        for family in [&self.skipped, &self.swaps, &self.drift] {
            drop(family.get_or_create(&label));
        }
        drop(self.rights_missing.get_or_create(&label));
        if self.version_stopped(plugin) {
            self.swaps.get_or_create(&label).inc();
        }
        self.loaded.get_or_create(&VersionLabels::new(plugin, version)).set(1);
        self.versions().insert(plugin.to_owned(), version.to_owned());
    }

    /// The plugin is gone. Removes its metrics.
    pub(super) fn remove(&self, plugin: &str) {
        self.version_stopped(plugin);
        for outcome in OUTCOMES {
            self.calls.remove(&CallLabels::new(plugin, outcome));
        }
        let label = PluginLabels::new(plugin);
        for family in [&self.call_seconds, &self.memory, &self.load_seconds, &self.compile_seconds] {
            family.remove(&label);
        }
        for family in [&self.skipped, &self.swaps, &self.drift] {
            family.remove(&label);
        }
        self.rights_missing.remove(&label);
    }

    /// No version is active any more. Returns whether one was.
    pub(super) fn version_stopped(&self, plugin: &str) -> bool {
        let Some(version) = self.versions().remove(plugin) else { return false };
        self.loaded.remove(&VersionLabels::new(plugin, &version))
    }

    fn versions(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.versions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Plugins {
    /// A plugin was loaded.
    pub fn loaded(&self, plugin: &str, stats: &LoadStats) {
        let plugin = PluginLabels::new(plugin);
        self.load_seconds.get_or_create(&plugin).observe(stats.duration.as_secs_f64());
        if let Some(compiling) = stats.compiling {
            self.compile_seconds.get_or_create(&plugin).observe(compiling.as_secs_f64());
        }
    }

    /// A plugin could not be loaded.
    pub fn load_failed(&self) {
        self.load_failures.inc();
    }

    /// All plugins together may keep so many bytes. Returns where to say how many they do keep.
    pub fn may_keep(&self, bytes: usize) -> Gauge {
        self.may_keep.set(i64::try_from(bytes).unwrap_or(i64::MAX));
        self.kept.clone()
    }

    /// A plugin was called.
    pub fn called(&self, plugin: &str, outcome: &Outcome, usage: &Usage) {
        if let Some(calls) = self.calls.get(&CallLabels::new(plugin, outcome_label(outcome))) {
            calls.inc();
        }
        let label = PluginLabels::new(plugin);
        let measured = [(&self.call_seconds, usage.duration.as_secs_f64()), (&self.memory, usage.memory_peak as f64)];
        for (family, value) in measured {
            if let Some(histogram) = family.get(&label) {
                histogram.observe(value);
            }
        }
    }

    /// A plugin was not called, for it would have been asked the same again.
    pub fn call_skipped(&self, plugin: &str) {
        count(&self.skipped, plugin);
    }

    /// The host lacks this many of the rights that the plugin needs.
    pub fn rights_missing(&self, plugin: &str, rights: usize) {
        let rights = i64::try_from(rights).unwrap_or(i64::MAX);
        self.rights_missing.get_or_create(&PluginLabels::new(plugin)).set(rights);
    }

    /// The host repaired a child that somebody else had changed.
    pub fn drift_repaired(&self, plugin: &str) {
        count(&self.drift, plugin);
    }
}

fn count(family: &Family<PluginLabels, Counter>, plugin: &str) {
    if let Some(counter) = family.get(&PluginLabels::new(plugin)) {
        counter.inc();
    }
}

fn outcome_label(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Response(_) => OUTCOMES[0],
        Outcome::Trap(_) => OUTCOMES[1],
        Outcome::Deadline(_) => OUTCOMES[2],
        Outcome::MemoryLimit(_) => OUTCOMES[3],
        Outcome::OutputLimit(_) => OUTCOMES[4],
        Outcome::Contract(_) => OUTCOMES[5],
        Outcome::HostMemory(_) => OUTCOMES[6],
    }
}
