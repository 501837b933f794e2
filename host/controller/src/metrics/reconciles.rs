//! The metrics of reconciles, under controller-runtime's names and with its buckets. Reconciles nothing.

use std::time::Duration;

use prometheus_client::{
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use super::labels::{ControllerLabels, ReconcileLabels};
use crate::queue::Action;

/// Buckets of `controller_runtime_reconcile_time_seconds`.
const SECONDS: [f64; 40] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5,
    1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0,
];

const RESULTS: [&str; 4] = ["success", "error", "requeue", "requeue_after"];

/// The metrics of reconciles.
pub struct Reconciles {
    total: Family<ReconcileLabels, Counter>,
    errors: Family<ControllerLabels, Counter>,
    terminal_errors: Family<ControllerLabels, Counter>,
    panics: Family<ControllerLabels, Counter>,
    timeouts: Family<ControllerLabels, Counter>,
    seconds: Family<ControllerLabels, Histogram>,
    active: Family<ControllerLabels, Gauge>,
    max_concurrent: Family<ControllerLabels, Gauge>,
}

impl Reconciles {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let seconds = Family::new_with_constructor((|| Histogram::new(SECONDS)) as fn() -> Histogram);
        let [errors, terminal_errors, panics, timeouts] =
            [(); 4].map(|()| Family::<ControllerLabels, Counter>::default());
        let [active, max_concurrent] = [(); 2].map(|()| Family::<ControllerLabels, Gauge>::default());
        let total = Family::default();
        let mut register = |name: &str, help: &str, family: &Family<ControllerLabels, Counter>| {
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
        registry.register("controller_runtime_max_concurrent_reconciles", most, Family::clone(&max_concurrent));
        Self { total, errors, terminal_errors, panics, timeouts, seconds, active, max_concurrent }
    }

    /// Creates a plugin's metrics at zero.
    pub(super) fn initialize(&self, plugin: &str, concurrency: usize) {
        let controller = ControllerLabels::new(plugin);
        for result in RESULTS {
            drop(self.total.get_or_create(&ReconcileLabels::new(plugin, result)));
        }
        for family in [&self.errors, &self.terminal_errors, &self.panics, &self.timeouts] {
            drop(family.get_or_create(&controller));
        }
        drop(self.seconds.get_or_create(&controller));
        drop(self.active.get_or_create(&controller));
        self.max_concurrent.get_or_create(&controller).set(concurrency.try_into().unwrap_or(i64::MAX));
    }

    /// Removes a plugin's metrics.
    pub(super) fn remove(&self, plugin: &str) {
        let controller = ControllerLabels::new(plugin);
        for result in RESULTS {
            self.total.remove(&ReconcileLabels::new(plugin, result));
        }
        for family in [&self.errors, &self.terminal_errors, &self.panics, &self.timeouts] {
            family.remove(&controller);
        }
        self.seconds.remove(&controller);
        self.active.remove(&controller);
        self.max_concurrent.remove(&controller);
    }

    pub(super) fn timed_out(&self, plugin: &str) {
        if let Some(timeouts) = self.timeouts.get(&ControllerLabels::new(plugin)) {
            timeouts.inc();
        }
    }
}

/// A reconcile that is counted as under way until this is dropped. Its plugin may go meanwhile, and come back with other numbers.
pub struct ActiveReconcile(Option<Gauge>);

impl Drop for ActiveReconcile {
    fn drop(&mut self) {
        if let Some(active) = &self.0 {
            active.dec();
        }
    }
}

impl Reconciles {
    /// A reconcile started.
    pub fn started(&self, plugin: &str) -> ActiveReconcile {
        let active = self.active.get(&ControllerLabels::new(plugin)).map(|active| active.clone());
        if let Some(active) = &active {
            active.inc();
        }
        ActiveReconcile(active)
    }

    /// A reconcile ended, with this action to follow.
    pub fn ended(&self, plugin: &str, action: Action, duration: Duration) {
        let controller = ControllerLabels::new(plugin);
        let [success, error, requeue, requeue_after] = RESULTS;
        let result = match action {
            Action::AwaitChange => success,
            Action::Requeue => requeue,
            Action::RequeueAfter(_) => requeue_after,
            // controller-runtime counts a terminal error as an error, too.
            Action::Terminal | Action::Backoff(_) | Action::BackoffUntil { .. } => error,
        };
        let count = |family: &Family<ControllerLabels, Counter>| {
            if let Some(counter) = family.get(&controller) {
                counter.inc();
            }
        };
        if let Some(total) = self.total.get(&ReconcileLabels::new(plugin, result)) {
            total.inc();
        }
        if let Some(seconds) = self.seconds.get(&controller) {
            seconds.observe(duration.as_secs_f64());
        }
        if result == error {
            count(&self.errors);
        }
        if action == Action::Terminal {
            count(&self.terminal_errors);
        }
    }

    /// A reconcile ended in a panic.
    pub fn panicked(&self, plugin: &str) {
        if let Some(panics) = self.panics.get(&ControllerLabels::new(plugin)) {
            panics.inc();
        }
    }
}
