//! The metrics that plugins declare and the measurements that they return. Exposed under exactly the declared names, which never
//! collide with the host's own. The number of series is bounded, so a plugin cannot fill the memory.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
};

use pilothouse_engine::{Manifest, Measurement, MeasurementKind, contract};
use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, EncodeMetric, MetricEncoder, NoLabelSet},
    metrics::{MetricType, counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};

use super::labels::PluginLabels;

/// The most series that one metric may have; measurements for further series are dropped.
const MAX_SERIES: usize = 1_000;

/// The most series that all metrics of a plugin may have together.
const MAX_PLUGIN_SERIES: usize = 5_000;

/// The prefixes of the host's own metrics.
const OWN_PREFIXES: [&str; 6] =
    ["controller_runtime_", "leader_election_", "pilothouse_", "process_", "rest_client_", "workqueue_"];

/// A plugin declares a metric that collides with an existing one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Collision {
    /// The name is reserved for the host.
    #[error(
        "the metric `{name}` has the name of a metric of the host; names beginning with {OWN_PREFIXES:?} are the host's"
    )]
    Host {
        /// The metric.
        name: String,
    },
    /// Another plugin declares a different metric with the same name.
    #[error(
        "the metric `{name}` is declared by plugin '{other}' as well, with another kind, other labels or other buckets; \
         rename one, or declare both alike"
    )]
    Plugin {
        /// The metric.
        name: String,
        /// The other plugin.
        other: String,
    },
}

/// The metrics of all plugins.
#[derive(Debug)]
pub struct Measurements {
    state: Mutex<MetricsByName>,
    dropped: Family<PluginLabels, Counter>,
}

#[derive(Debug, Default)]
struct MetricsByName {
    /// The metrics that each loaded or active plugin declares.
    declared: BTreeMap<String, Vec<Measurement>>,
    /// The exposed metrics, by name.
    registered: BTreeMap<String, RegisteredMetric>,
}

/// An exposed metric. Its series are keyed by their label values, in the order of the declaration.
#[derive(Debug)]
struct RegisteredMetric {
    declared: Measurement,
    /// The plugins that declare it.
    users: BTreeSet<String>,
    series: BTreeMap<Vec<String>, Series>,
    /// Whether the log has said that there are too many series.
    overflow_logged: bool,
}

#[derive(Debug)]
enum Series {
    Counter(f64),
    Gauge(f64),
    Histogram(Histogram),
}

impl Measurements {
    pub(super) fn register(registry: &mut Registry) -> Self {
        let dropped = Family::default();
        let help = "Measurements of plugins that were dropped, for their metrics have too many series";
        registry.register("pilothouse_measurements_dropped", help, Family::clone(&dropped));
        Self { state: Mutex::default(), dropped }
    }

    /// A version became active: exposes what it declares, and removes what only its predecessor declared.
    pub(super) fn plugin_started(&self, manifest: &Manifest) {
        drop(self.dropped.get_or_create(&PluginLabels::new(&manifest.name)));
        let mut state = self.state();
        state.release(&manifest.name, &manifest.measurements);
        for measurement in &manifest.measurements {
            let registered = state
                .registered
                .entry(measurement.name.clone())
                .or_insert_with(|| RegisteredMetric::new(measurement.clone()));
            if !is_same(&registered.declared, measurement) {
                // Series with other labels or buckets cannot go on under the same name.
                *registered = RegisteredMetric::new(measurement.clone());
            }
            registered.users.insert(manifest.name.clone());
        }
    }

    /// A plugin was removed: removes its metrics.
    pub(super) fn plugin_stopped(&self, plugin: &str) {
        let mut state = self.state();
        state.release(plugin, &[]);
        state.declared.remove(plugin);
        self.dropped.remove(&PluginLabels::new(plugin));
    }

    fn state(&self) -> MutexGuard<'_, MetricsByName> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Measurements {
    /// Notes that the metrics of a plugin are in use from now on. [`Self::check`] says beforehand whether they may be.
    pub fn declare(&self, manifest: &Manifest) {
        self.state().declared.insert(manifest.name.clone(), manifest.measurements.clone());
    }

    /// Whether a plugin may have its metrics if these other plugins had none.
    ///
    /// # Errors
    /// [`Collision`] if a name belongs to the host, or to a different metric of another plugin.
    pub fn check(&self, manifest: &Manifest, without: &[&str]) -> Result<(), Collision> {
        self.state().check(manifest, without)
    }

    /// Records the measurements of a response that passed the checks.
    pub fn record(&self, plugin: &str, measurements: &[contract::Measurement]) {
        if measurements.is_empty() {
            return;
        }
        let mut state = self.state();
        let mut room = MAX_PLUGIN_SERIES.saturating_sub(state.series_of(plugin));
        for measurement in measurements {
            // A version that was replaced during its call may have declared other metrics.
            let Some(registered) = state.registered.get_mut(&measurement.name) else { continue };
            if !registered.record(measurement, &mut room) {
                if let Some(dropped) = self.dropped.get(&PluginLabels::new(plugin)) {
                    dropped.inc();
                }
                if !std::mem::replace(&mut registered.overflow_logged, true) {
                    let metric = &measurement.name;
                    tracing::warn!(
                        plugin,
                        metric,
                        "more than {MAX_SERIES} series, or more than {MAX_PLUGIN_SERIES} of all metrics of the plugin; measurements of \
                         others are dropped"
                    );
                }
            }
        }
    }
}

impl MetricsByName {
    /// How many series the metrics of a plugin have, with those that it shares.
    fn series_of(&self, plugin: &str) -> usize {
        self.registered.values().filter(|metric| metric.users.contains(plugin)).map(|metric| metric.series.len()).sum()
    }

    fn check(&self, manifest: &Manifest, without: &[&str]) -> Result<(), Collision> {
        let without: Vec<_> = without.iter().copied().chain([manifest.name.as_str()]).collect();
        manifest.measurements.iter().try_for_each(|measurement| self.collision(measurement, &without))
    }

    fn collision(&self, measurement: &Measurement, without: &[&str]) -> Result<(), Collision> {
        let name = || measurement.name.clone();
        if OWN_PREFIXES.iter().any(|prefix| measurement.name.starts_with(prefix)) {
            return Err(Collision::Host { name: name() });
        }
        let others = self.declared.iter().filter(|(other, _)| !without.contains(&other.as_str()));
        for (other, theirs) in others.flat_map(|(other, all)| all.iter().map(move |theirs| (other, theirs))) {
            if family(theirs) == family(measurement) && !is_same(theirs, measurement) {
                return Err(Collision::Plugin { name: name(), other: other.clone() });
            }
        }
        Ok(())
    }

    /// Removes a plugin from the users of all metrics except these, and removes metrics without users.
    fn release(&mut self, plugin: &str, kept: &[Measurement]) {
        self.registered.retain(|_, registered| {
            if !kept.iter().any(|declared| is_same(declared, &registered.declared)) {
                registered.users.remove(plugin);
            }
            !registered.users.is_empty()
        });
    }
}

impl RegisteredMetric {
    fn new(declared: Measurement) -> Self {
        let mut series = BTreeMap::new();
        // Without labels there is exactly one series. It starts at zero, except for a gauge: only the plugin knows its value.
        if declared.labels.is_empty() && declared.kind != MeasurementKind::Gauge {
            series.insert(Vec::new(), Series::new(&declared));
        }
        Self { declared, users: BTreeSet::new(), series, overflow_logged: false }
    }

    /// Records a measurement. Returns whether there was room for its series; `room`: for how many more the plugin has some.
    fn record(&mut self, measurement: &contract::Measurement, room: &mut usize) -> bool {
        let value =
            |key: &String| measurement.labels.iter().find(|label| label.key == *key).map(|label| label.value.clone());
        let Some(values) = self.declared.labels.iter().map(value).collect::<Option<Vec<_>>>() else { return true };
        if !self.series.contains_key(&values) {
            if self.series.len() >= MAX_SERIES || *room == 0 {
                return false;
            }
            *room -= 1;
        }
        self.series.entry(values).or_insert_with(|| Series::new(&self.declared)).observe(measurement.value);
        true
    }

    fn encode(&self, encoder: &mut DescriptorEncoder<'_>) -> fmt::Result {
        let kind = match self.declared.kind {
            MeasurementKind::Counter => MetricType::Counter,
            MeasurementKind::Gauge => MetricType::Gauge,
            MeasurementKind::Histogram => MetricType::Histogram,
        };
        let mut metric = encoder.encode_descriptor(family(&self.declared), &self.declared.help, None, kind)?;
        for (values, series) in &self.series {
            let labels: Vec<_> =
                self.declared.labels.iter().zip(values).map(|(key, value)| (key.as_str(), value)).collect();
            series.encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

impl Series {
    fn new(declared: &Measurement) -> Self {
        match declared.kind {
            MeasurementKind::Counter => Self::Counter(0.0),
            MeasurementKind::Gauge => Self::Gauge(0.0),
            MeasurementKind::Histogram => Self::Histogram(Histogram::new(declared.bounds().iter().copied())),
        }
    }

    fn observe(&mut self, value: f64) {
        match self {
            Self::Counter(sum) => *sum += value,
            Self::Gauge(last) => *last = value,
            Self::Histogram(histogram) => histogram.observe(value),
        }
    }

    fn encode(&self, mut metric: MetricEncoder<'_>) -> fmt::Result {
        match self {
            Self::Counter(sum) => metric.encode_counter::<NoLabelSet, _, f64>(sum, None),
            Self::Gauge(last) => metric.encode_gauge(last),
            Self::Histogram(histogram) => histogram.encode(metric),
        }
    }
}

/// Exposes the metrics of all plugins.
#[derive(Debug)]
pub(super) struct MeasurementsCollector(pub(super) std::sync::Arc<Measurements>);

impl Collector for MeasurementsCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.state().registered.values().try_for_each(|registered| registered.encode(&mut encoder))
    }
}

/// The name of the metric family: OpenMetrics leaves out the suffix of a counter.
fn family(measurement: &Measurement) -> &str {
    measurement.name.strip_suffix("_total").unwrap_or(&measurement.name)
}

/// Whether two declarations describe the same metric. Their help texts may differ.
fn is_same(a: &Measurement, b: &Measurement) -> bool {
    a.name == b.name && a.kind == b.kind && a.labels == b.labels && a.bounds() == b.bounds()
}

#[cfg(test)]
mod tests {
    use pilothouse_engine::contract::KindRef;

    use super::*;
    use crate::metrics::{Format, Metrics};

    #[test]
    fn the_series_of_a_plugin_are_bounded_over_all_its_metrics() {
        let metrics = Metrics::new();
        let mut manifest = Manifest::new("web", "1", KindRef::new("v1", "Web"));
        let declared = |number| Measurement {
            name: format!("web_{number}"),
            kind: MeasurementKind::Gauge,
            help: "Help.".to_owned(),
            labels: vec!["object".to_owned()],
            buckets: Vec::new(),
        };
        manifest.measurements = (0..10).map(declared).collect();
        metrics.measurements.declare(&manifest);
        metrics.measurements.plugin_started(&manifest);
        let sample = |metric: usize, object: usize| contract::Measurement {
            name: format!("web_{metric}"),
            labels: vec![contract::Label { key: "object".to_owned(), value: object.to_string() }],
            value: 1.0,
        };
        let count = || metrics.measurements.state().series_of("web");
        for metric in 0..10 {
            let samples: Vec<_> = (0..MAX_SERIES).map(|object| sample(metric, object)).collect();
            metrics.measurements.record("web", &samples);
            assert_eq!(count(), MAX_PLUGIN_SERIES.min((metric + 1) * MAX_SERIES));
        }
        // What is there goes on.
        metrics.measurements.record("web", &[sample(0, 0), sample(9, 0)]);
        assert_eq!(count(), MAX_PLUGIN_SERIES);
    }

    #[test]
    fn the_hosts_own_names_are_kept_for_it() {
        let exposition = Metrics::new().exposition(Format::Classic);
        let names = exposition.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
        let others: Vec<_> = names.filter(|name| !OWN_PREFIXES.iter().any(|prefix| name.starts_with(prefix))).collect();
        assert!(others.is_empty(), "{others:?}");
    }
}
