//! The metrics: those that controller-runtime users already graph, under the same names, the host's own metrics of plugins, and
//! the metrics that plugins declare. One file per concern, each with its own recording functions. `docs/metrics.md` explains every
//! name. Decides nothing.

mod classic;
mod dropped;
mod election;
mod faults;
mod labels;
mod measurements;
mod new_versions;
mod plugins;
mod process;
mod queue;
mod reconciles;
mod requests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pilothouse_engine::{Call, Manifest, Outcome};
use prometheus_client::{encoding::text::encode, metrics::gauge::Gauge, registry::Registry};

pub use self::{
    dropped::Dropped,
    election::Election,
    faults::Faults,
    measurements::{Collision, Measurements},
    new_versions::NewVersions,
    plugins::Plugins,
    reconciles::Reconciles,
    requests::{RequestMetrics, WithRequestMetrics},
};
use self::{measurements::MeasurementsCollector, process::ProcessCollector, queue::WorkQueueCollector};
use crate::queue::Queue;

/// All metrics of the process.
pub struct Metrics {
    registry: Mutex<Registry>,
    /// Reconciles.
    pub reconciles: Reconciles,
    /// Plugins: versions, loads, calls, and repaired drift.
    pub plugins: Plugins,
    /// New versions of plugins that do not answer all objects.
    pub new_versions: NewVersions,
    /// Faults reported on objects.
    pub faults: Faults,
    /// Events and log lines that were not written.
    pub dropped: Dropped,
    /// Leader election.
    pub election: Election,
    /// Requests to the API server.
    requests: RequestMetrics,
    /// The metrics that plugins declare.
    pub measurements: Arc<Measurements>,
}

/// A text format for metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' classic text format, which every scraper reads.
    Classic,
    /// OpenMetrics, for scrapers that ask for it.
    OpenMetrics,
}

impl Format {
    /// The format for a client with this `Accept` header.
    pub fn accepted(accept: &str) -> Self {
        if accept.contains("application/openmetrics-text") { Self::OpenMetrics } else { Self::Classic }
    }

    /// The value of the `Content-Type` header.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Classic => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

impl Metrics {
    /// Registers everything.
    pub fn new() -> Arc<Self> {
        let mut registry = Registry::default();
        let reconciles = Reconciles::register(&mut registry);
        let plugins = Plugins::register(&mut registry);
        let new_versions = NewVersions::register(&mut registry);
        let faults = Faults::register(&mut registry);
        let dropped = Dropped::register(&mut registry);
        let election = Election::register(&mut registry);
        let requests = RequestMetrics::register(&mut registry);
        let measurements = Arc::new(Measurements::register(&mut registry));
        let build = labels::BuildLabels { version: env!("CARGO_PKG_VERSION") };
        let built = prometheus_client::metrics::family::Family::<_, Gauge>::default();
        built.get_or_create(&build).set(1);
        registry.register("pilothouse_build_info", "1, with the version of the host", built);
        registry.register_collector(Box::new(ProcessCollector));
        registry.register_collector(Box::new(MeasurementsCollector(measurements.clone())));
        Arc::new(Self {
            registry: Mutex::new(registry),
            reconciles,
            plugins,
            new_versions,
            faults,
            dropped,
            election,
            requests,
            measurements,
        })
    }

    /// Exposes a queue's statistics too.
    pub fn register_queue(&self, queue: &Arc<Queue>) {
        self.registry().register_collector(Box::new(WorkQueueCollector(queue.clone())));
    }

    /// The layer that counts requests to the API server.
    pub fn requests(&self) -> RequestMetrics {
        self.requests.clone()
    }

    /// A plugin's version became active in place of any other, with this concurrency.
    pub fn plugin_started(&self, manifest: &Manifest, concurrency: usize) {
        self.reconciles.initialize(&manifest.name, concurrency);
        self.plugins.version_started(&manifest.name, &manifest.version);
        self.faults.initialize(&manifest.name);
        self.dropped.initialize(&manifest.name);
        self.measurements.plugin_started(manifest);
    }

    /// A plugin was removed. Its series go.
    pub fn plugin_stopped(&self, plugin: &str) {
        self.reconciles.remove(plugin);
        self.plugins.remove(plugin);
        self.faults.remove(plugin);
        self.dropped.remove(plugin);
        self.measurements.plugin_stopped(plugin);
    }

    /// A plugin was called.
    pub fn called(&self, plugin: &str, call: &Call) {
        self.plugins.called(plugin, &call.outcome, &call.usage);
        self.dropped.log_lines(plugin, call.usage.log_lines_dropped);
        if matches!(call.outcome, Outcome::Deadline(_)) {
            self.reconciles.timed_out(plugin);
        }
    }

    /// The present values of all metrics.
    pub fn exposition(&self, format: Format) -> String {
        let mut text = String::new();
        if let Err(error) = encode(&mut text, &self.registry()) {
            tracing::error!("failed to encode the metrics: {error}");
        }
        match format {
            Format::OpenMetrics => text,
            Format::Classic => classic::classic(&text),
        }
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{collections::BTreeSet, time::Duration};

    use pilothouse_engine::{LoadStats, Outcome, Recorded, Usage, contract::KindRef};

    use super::*;
    use crate::queue::Action;

    /// Everything that happens with a plugin.
    fn use_all(metrics: &Metrics, plugin: &str) {
        drop(metrics.reconciles.started(plugin));
        for action in [Action::AwaitChange, Action::Requeue, Action::Terminal, Action::Backoff(Duration::ZERO)] {
            metrics.reconciles.ended(plugin, action, Duration::ZERO);
        }
        metrics.reconciles.panicked(plugin);
        let usage = Usage { log_lines_dropped: 1, ..Usage::default() };
        let outcome = Outcome::Deadline(Duration::ZERO);
        metrics.called(plugin, &Call { outcome, usage, recorded: Recorded::default() });
        metrics.plugins.call_skipped(plugin);
        metrics.plugins.drift_repaired(plugin);
        metrics.faults.count(plugin, "LookupDenied");
        metrics.faults.count(plugin, "ApiServerError");
        metrics.dropped.event(plugin);
    }

    #[test]
    fn the_series_of_a_plugin_go_with_it_and_do_not_come_back() {
        let (metrics, queue) = (Metrics::new(), Arc::new(Queue::new(1, crate::clock::Random::seeded(1))));
        metrics.register_queue(&queue);
        let names = || {
            let text = metrics.exposition(Format::Classic);
            text.lines().filter(|line| line.contains("\"web\"")).map(str::to_owned).collect::<BTreeSet<_>>()
        };
        let begin = || {
            let stats = LoadStats { compiling: Some(Duration::ZERO), duration: Duration::ZERO };
            metrics.plugins.loaded("web", &stats);
            metrics.plugin_started(&Manifest::new("web", "1", KindRef::new("v1", "Web")), 4);
            metrics.plugins.rights_missing("web", 0);
            queue.open("web", None);
        };
        begin();
        let at_first = names();
        use_all(&metrics, "web");
        assert!(names().len() > at_first.len() && at_first.len() > 50, "{at_first:#?}");
        let under_way = metrics.reconciles.started("web");
        metrics.plugin_stopped("web");
        queue.forget_plugin("web");
        assert_eq!(names(), BTreeSet::new());
        use_all(&metrics, "web");
        assert_eq!(names(), BTreeSet::new(), "a reconcile may end later");
        begin();
        drop(under_way);
        assert_eq!(names(), at_first, "it begins anew");
    }
}
