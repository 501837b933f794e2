//! Reconciles as controller-runtime counts them, under its names and with its buckets.

use std::time::Duration;

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use super::{Metrics, labels::Controller, labels::Reconciled};
use crate::queue::Next;

/// Buckets of `controller_runtime_reconcile_time_seconds`.
const SECONDS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
];

const RESULTS: [&str; 4] = ["success", "error", "requeue", "requeue_after"];

pub(super) struct Reconciles {
    total: Family<Reconciled, Counter>,
    errors: Family<Controller, Counter>,
    terminal_errors: Family<Controller, Counter>,
    panics: Family<Controller, Counter>,
    timeouts: Family<Controller, Counter>,
    seconds: Family<Controller, Histogram>,
    active: Family<Controller, Gauge>,
    most_at_once: Family<Controller, Gauge>,
}

impl Reconciles {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let seconds = Family::new_with_constructor((|| Histogram::new(SECONDS)) as fn() -> Histogram);
        let [errors, terminal_errors, panics, timeouts] = [(); 4].map(|()| Family::<Controller, Counter>::default());
        let [active, most_at_once] = [(); 2].map(|()| Family::<Controller, Gauge>::default());
        let total = Family::default();
        let mut register = |name: &str, help: &str, family: &Family<Controller, Counter>| {
            registry.register(format!("controller_runtime_{name}"), help, family.clone());
        };
        register("reconcile_errors", "Reconciles that failed", &errors);
        register("terminal_reconcile_errors", "Reconciles that failed and are not tried again", &terminal_errors);
        register("reconcile_panics", "Reconciles that ended in a panic of the host", &panics);
        register("reconcile_timeouts", "Plugin calls that ran into their deadline", &timeouts);
        registry.register("controller_runtime_reconcile", "Reconciles by result", Family::clone(&total));
        registry.register("controller_runtime_reconcile_time_seconds", "Time of a reconcile", Family::clone(&seconds));
        registry.register("controller_runtime_active_workers", "Reconciles under way", Family::clone(&active));
        let most = "Reconciles of one plugin that may be under way at once";
        registry.register("controller_runtime_max_concurrent_reconciles", most, Family::clone(&most_at_once));
        Self { total, errors, terminal_errors, panics, timeouts, seconds, active, most_at_once }
    }

    /// Everything begins at zero.
    pub(super) fn begin(&self, plugin: &str, concurrency: usize) {
        let controller = Controller::new(plugin);
        for result in RESULTS {
            drop(self.total.get_or_create(&Reconciled::new(plugin, result)));
        }
        for family in [&self.errors, &self.terminal_errors, &self.panics, &self.timeouts] {
            drop(family.get_or_create(&controller));
        }
        drop(self.seconds.get_or_create(&controller));
        drop(self.active.get_or_create(&controller));
        self.most_at_once.get_or_create(&controller).set(concurrency.try_into().unwrap_or(i64::MAX));
    }

    pub(super) fn timed_out(&self, plugin: &str) {
        self.timeouts.get_or_create(&Controller::new(plugin)).inc();
    }
}

impl Metrics {
    /// A reconcile began.
    pub fn began(&self, plugin: &str) {
        self.reconciles.active.get_or_create(&Controller::new(plugin)).inc();
    }

    /// A reconcile ended.
    pub fn ended(&self, plugin: &str, next: Next, duration: Duration) {
        let (controller, reconciles) = (Controller::new(plugin), &self.reconciles);
        let [success, error, requeue, requeue_after] = RESULTS;
        let result = match next {
            Next::Rest => success,
            Next::Again => requeue,
            Next::After(_) => requeue_after,
            Next::GiveUp | Next::Backoff(_) => error,
        };
        reconciles.active.get_or_create(&controller).dec();
        reconciles.total.get_or_create(&Reconciled::new(plugin, result)).inc();
        reconciles.seconds.get_or_create(&controller).observe(duration.as_secs_f64());
        if result == error {
            reconciles.errors.get_or_create(&controller).inc();
        }
        if next == Next::GiveUp {
            reconciles.terminal_errors.get_or_create(&controller).inc();
        }
    }

    /// A reconcile ended in a panic.
    pub fn panicked(&self, plugin: &str) {
        self.reconciles.panics.get_or_create(&Controller::new(plugin)).inc();
    }
}
