//! Metrics under the names that controller-runtime users already graph, and the host's own for plugins. Labels come from
//! closed sets: plugin names and fixed words.

use std::{
    collections::HashMap,
    fmt::Write,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use pilothouse_engine::Outcome;
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use crate::queue::Next;

/// Buckets of `controller_runtime_reconcile_time_seconds`, as controller-runtime has them.
const RECONCILE_SECONDS: [f64; 42] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0, 120.0,
    300.0,
];

/// Buckets of a plugin call: from ten microseconds to the longest deadline.
const CALL_SECONDS: [f64; 14] = [1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 1e-2, 5e-2, 0.1, 1.0, 10.0];

/// The controller: a plugin's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Controller {
    controller: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Reconciled {
    controller: String,
    result: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Called {
    plugin: String,
    outcome: &'static str,
}

/// A Lease, by its name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Lease {
    name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Loaded {
    plugin: String,
    version: String,
}

/// All metrics of the process.
pub struct Metrics {
    registry: Registry,
    reconciles: Family<Reconciled, Counter>,
    errors: Family<Controller, Counter>,
    seconds: Family<Controller, Histogram>,
    active: Family<Controller, Gauge>,
    calls: Family<Called, Counter>,
    call_seconds: Family<Controller, Histogram>,
    loaded: Family<Loaded, Gauge>,
    load_failures: Counter,
    drift: Family<Controller, Counter>,
    skipped: Family<Controller, Counter>,
    leading: Family<Lease, Gauge>,
    slow_paths: Family<Lease, Counter>,
    /// The version at work, by plugin.
    versions: Mutex<HashMap<String, String>>,
}

impl Metrics {
    /// Registers everything.
    pub fn new() -> Arc<Self> {
        let mut registry = Registry::default();
        let reconciles = Family::default();
        let errors = Family::default();
        let seconds = Family::new_with_constructor((|| Histogram::new(RECONCILE_SECONDS)) as fn() -> Histogram);
        let active = Family::default();
        let calls = Family::default();
        let call_seconds = Family::new_with_constructor((|| Histogram::new(CALL_SECONDS)) as fn() -> Histogram);
        let (loaded, load_failures) = (Family::default(), Counter::default());
        let (drift, skipped) = (Family::default(), Family::default());
        let (leading, slow_paths) = (Family::default(), Family::default());
        // The library appends `_total` to counters by itself.
        registry.register("controller_runtime_reconcile", "Reconciles by result", Family::clone(&reconciles));
        registry.register("controller_runtime_reconcile_errors", "Reconciles that failed", Family::clone(&errors));
        registry.register("controller_runtime_reconcile_time_seconds", "Time of a reconcile", Family::clone(&seconds));
        registry.register("controller_runtime_active_workers", "Reconciles under way", Family::clone(&active));
        registry.register("pilothouse_plugin_calls", "Plugin calls by outcome", Family::clone(&calls));
        registry.register("pilothouse_plugin_call_seconds", "Time of a plugin call", Family::clone(&call_seconds));
        registry.register("pilothouse_plugin_loaded", "1 for the version at work", Family::clone(&loaded));
        registry.register("pilothouse_plugin_load_failures", "Plugins that did not load", load_failures.clone());
        registry.register("pilothouse_drift_repaired", "Children that somebody else changed", Family::clone(&drift));
        let unasked = "Reconciles that left the plugin unasked, for no input had changed";
        registry.register("pilothouse_plugin_calls_skipped", unasked, Family::clone(&skipped));
        registry.register("leader_election_master_status", "1 on the host that leads", Family::clone(&leading));
        let slow = "Renewals that had to read the Lease first";
        registry.register("leader_election_slowpath", slow, Family::clone(&slow_paths));
        Arc::new(Self {
            registry,
            reconciles,
            errors,
            seconds,
            active,
            calls,
            call_seconds,
            loaded,
            load_failures,
            drift,
            skipped,
            leading,
            slow_paths,
            versions: Mutex::default(),
        })
    }

    /// A plugin version began to work, in the place of every other version of it.
    pub fn plugin_started(&self, plugin: &str, version: &str) {
        self.plugin_stopped(plugin);
        let controller = Controller { controller: plugin.to_owned() };
        for result in ["success", "error", "requeue", "requeue_after"] {
            drop(self.reconciles.get_or_create(&Reconciled { controller: plugin.to_owned(), result }));
        }
        drop(self.errors.get_or_create(&controller));
        drop(self.seconds.get_or_create(&controller));
        drop(self.active.get_or_create(&controller));
        drop(self.drift.get_or_create(&controller));
        drop(self.skipped.get_or_create(&controller));
        for outcome in OUTCOMES {
            drop(self.calls.get_or_create(&Called { plugin: plugin.to_owned(), outcome }));
        }
        self.loaded.get_or_create(&Loaded { plugin: plugin.to_owned(), version: version.to_owned() }).set(1);
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        versions.insert(plugin.to_owned(), version.to_owned());
    }

    /// A plugin no longer works.
    pub fn plugin_stopped(&self, plugin: &str) {
        let mut versions = self.versions.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(version) = versions.remove(plugin) {
            self.loaded.remove(&Loaded { plugin: plugin.to_owned(), version });
        }
    }

    /// A plugin could not be loaded.
    pub fn load_failed(&self) {
        self.load_failures.inc();
    }

    /// A reconcile began.
    pub fn began(&self, plugin: &str) {
        self.active.get_or_create(&Controller { controller: plugin.to_owned() }).inc();
    }

    /// A reconcile ended.
    pub fn ended(&self, plugin: &str, next: Next, duration: Duration) {
        let controller = Controller { controller: plugin.to_owned() };
        let result = match next {
            Next::Rest => "success",
            Next::Again => "requeue",
            Next::After(_) => "requeue_after",
            Next::Backoff(_) => "error",
        };
        self.active.get_or_create(&controller).dec();
        self.reconciles.get_or_create(&Reconciled { controller: plugin.to_owned(), result }).inc();
        self.seconds.get_or_create(&controller).observe(duration.as_secs_f64());
        if matches!(next, Next::Backoff(_)) {
            self.errors.get_or_create(&controller).inc();
        }
    }

    /// A plugin was called.
    pub fn called(&self, plugin: &str, outcome: &Outcome, duration: Duration) {
        let outcome = outcome_word(outcome);
        self.calls.get_or_create(&Called { plugin: plugin.to_owned(), outcome }).inc();
        let controller = Controller { controller: plugin.to_owned() };
        self.call_seconds.get_or_create(&controller).observe(duration.as_secs_f64());
    }

    /// A plugin was not called, for it would have been asked the same again.
    pub fn call_skipped(&self, plugin: &str) {
        self.skipped.get_or_create(&Controller { controller: plugin.to_owned() }).inc();
    }

    /// A child that somebody else had changed was repaired.
    pub fn drift_repaired(&self, plugin: &str) {
        self.drift.get_or_create(&Controller { controller: plugin.to_owned() }).inc();
    }

    /// This host leads, or stands by.
    pub fn leading(&self, lease: &str, leads: bool) {
        let lease = Lease { name: lease.to_owned() };
        self.leading.get_or_create(&lease).set(leads.into());
        drop(self.slow_paths.get_or_create(&lease));
    }

    /// The leader had to read its Lease before it could renew it.
    pub fn election_slow_path(&self, lease: &str) {
        self.slow_paths.get_or_create(&Lease { name: lease.to_owned() }).inc();
    }

    /// The exposition in Prometheus' text format.
    pub fn exposition(&self) -> String {
        let mut text = String::new();
        if let Err(error) = encode(&mut text, &self.registry).and_then(|()| text.write_char('\n')) {
            tracing::error!("failed to encode the metrics: {error}");
        }
        text
    }
}

const OUTCOMES: [&str; 6] = ["response", "trap", "deadline", "memory_limit", "output_limit", "contract"];

fn outcome_word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Response(_) => OUTCOMES[0],
        Outcome::Trap(_) => OUTCOMES[1],
        Outcome::Deadline(_) => OUTCOMES[2],
        Outcome::MemoryLimit(_) => OUTCOMES[3],
        Outcome::OutputLimit(_) => OUTCOMES[4],
        Outcome::Contract(_) => OUTCOMES[5],
    }
}
