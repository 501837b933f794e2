//! Metrics under the names that controller-runtime users already graph, the host's own for plugins, and those that plugins
//! declare themselves. One file per concern, each with the functions that count it. Every name is explained in
//! `docs/metrics.md`.

mod classic;
mod election;
mod faults;
mod labels;
mod measurements;
mod plugins;
mod process;
mod queue;
mod reconciles;
mod requests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pilothouse_engine::Manifest;
use prometheus_client::{encoding::text::encode, metrics::gauge::Gauge, registry::Registry};

use self::{
    election::Election,
    faults::Faults,
    measurements::{Measurements, OfPlugins},
    plugins::Plugins,
    process::Process,
    queue::WorkQueue,
    reconciles::Reconciles,
};
pub use self::{
    measurements::Collision,
    requests::{Counted, Requests},
};
use crate::queue::Queue;

/// All metrics of the process.
pub struct Metrics {
    registry: Mutex<Registry>,
    reconciles: Reconciles,
    plugins: Plugins,
    faults: Faults,
    election: Election,
    requests: Requests,
    measurements: Arc<Measurements>,
}

/// A way to write metrics down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus' own text format, which everything reads.
    Classic,
    /// OpenMetrics, for those that ask for it.
    OpenMetrics,
}

impl Format {
    /// The format that a client asks for in its `Accept` header.
    pub fn accepted(accept: &str) -> Self {
        if accept.contains("application/openmetrics-text") { Self::OpenMetrics } else { Self::Classic }
    }

    /// What it is called in a `Content-Type` header.
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
        let faults = Faults::register(&mut registry);
        let election = Election::register(&mut registry);
        let requests = Requests::register(&mut registry);
        let measurements = Arc::new(Measurements::register(&mut registry));
        let build = labels::Build { version: env!("CARGO_PKG_VERSION") };
        let built = prometheus_client::metrics::family::Family::<_, Gauge>::default();
        built.get_or_create(&build).set(1);
        registry.register("pilothouse_build_info", "1, with the version of the host", built);
        registry.register_collector(Box::new(Process));
        registry.register_collector(Box::new(OfPlugins(measurements.clone())));
        Arc::new(Self { registry: Mutex::new(registry), reconciles, plugins, faults, election, requests, measurements })
    }

    /// Shows a queue's numbers too.
    pub fn follow(&self, queue: &Arc<Queue>) {
        self.registry().register_collector(Box::new(WorkQueue(queue.clone())));
    }

    /// Counts requests to the API server.
    pub fn requests(&self) -> Requests {
        self.requests.clone()
    }

    /// A plugin version began to work, in the place of every other version of it, on so many objects at once.
    pub fn plugin_started(&self, manifest: &Manifest, concurrency: usize) {
        self.reconciles.begin(&manifest.name, concurrency);
        self.plugins.begin(&manifest.name, &manifest.version);
        self.faults.begin(&manifest.name);
        self.measurements.begin(manifest);
    }

    /// A plugin no longer works.
    pub fn plugin_stopped(&self, plugin: &str) {
        self.plugins.end(plugin);
        self.measurements.end(plugin);
    }

    /// All metrics as they are now.
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
