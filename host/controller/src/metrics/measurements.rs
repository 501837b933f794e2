//! The metrics that plugins declare, and the samples that they return. Shown under exactly the declared names, apart from
//! the host's own. Bounded: a plugin cannot fill the memory with series.

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

use super::{Metrics, labels::Plugin};

/// Series that one metric may have; samples of more are dropped.
const MOST_SERIES: usize = 1_000;

/// Beginnings of the names of the host's own metrics.
const OWN: [&str; 6] =
    ["controller_runtime_", "leader_election_", "pilothouse_", "process_", "rest_client_", "workqueue_"];

/// A plugin declares a metric that cannot be shown beside those that are there.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Collision {
    /// The name is one that the host keeps for itself.
    #[error("the metric `{name}` has the name of a metric of the host; names beginning with {OWN:?} are the host's")]
    Host {
        /// The metric.
        name: String,
    },
    /// Another plugin has a metric of that name, which is another one.
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
pub(super) struct Measurements {
    state: Mutex<State>,
    dropped: Family<Plugin, Counter>,
}

#[derive(Debug, Default)]
struct State {
    /// What the plugins that are loaded or at work declare.
    declared: BTreeMap<String, Vec<Measurement>>,
    /// What is shown, by name.
    shown: BTreeMap<String, Shown>,
}

/// A metric with its series, by the values of its labels in the order of the declaration.
#[derive(Debug)]
struct Shown {
    declared: Measurement,
    users: BTreeSet<String>,
    series: BTreeMap<Vec<String>, Series>,
    /// Whether it was told that there are too many.
    told: bool,
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
        let help = "Samples of plugins that were dropped, for their metrics have too many series";
        registry.register("pilothouse_measurements_dropped", help, Family::clone(&dropped));
        Self { state: Mutex::default(), dropped }
    }

    /// A version is at work: what it declares is shown, what only its predecessor declared is not.
    pub(super) fn begin(&self, manifest: &Manifest) {
        drop(self.dropped.get_or_create(&Plugin::new(&manifest.name)));
        let mut state = self.state();
        state.leave(&manifest.name, &manifest.measurements);
        for measurement in &manifest.measurements {
            let shown = state.shown.entry(measurement.name.clone()).or_insert_with(|| Shown::new(measurement.clone()));
            if !is_same(&shown.declared, measurement) {
                *shown = Shown::new(measurement.clone());
            }
            shown.users.insert(manifest.name.clone());
        }
    }

    /// A plugin is gone, and so are its metrics.
    pub(super) fn end(&self, plugin: &str) {
        let mut state = self.state();
        state.leave(plugin, &[]);
        state.declared.remove(plugin);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Metrics {
    /// Keeps the names of a plugin's metrics for it.
    ///
    /// # Errors
    /// [`Collision`] where one cannot be shown beside those of the host and of other plugins.
    pub fn reserve(&self, manifest: &Manifest) -> Result<(), Collision> {
        let mut state = self.measurements.state();
        manifest.measurements.iter().try_for_each(|measurement| state.collision(&manifest.name, measurement))?;
        state.declared.insert(manifest.name.clone(), manifest.measurements.clone());
        Ok(())
    }

    /// Takes the samples of an answer, which was checked.
    pub fn measured(&self, plugin: &str, samples: &[contract::Measurement]) {
        if samples.is_empty() {
            return;
        }
        let mut state = self.measurements.state();
        for sample in samples {
            // A version that was replaced while it was called may have declared others.
            let Some(shown) = state.shown.get_mut(&sample.name) else { continue };
            if !shown.take(sample) {
                self.measurements.dropped.get_or_create(&Plugin::new(plugin)).inc();
                if !std::mem::replace(&mut shown.told, true) {
                    let metric = &sample.name;
                    tracing::warn!(plugin, metric, "more than {MOST_SERIES} series; samples of others are dropped");
                }
            }
        }
    }
}

impl State {
    fn collision(&self, plugin: &str, measurement: &Measurement) -> Result<(), Collision> {
        let name = || measurement.name.clone();
        if OWN.iter().any(|own| measurement.name.starts_with(own)) {
            return Err(Collision::Host { name: name() });
        }
        let others = self.declared.iter().filter(|(other, _)| *other != plugin);
        for (other, theirs) in others.flat_map(|(other, all)| all.iter().map(move |theirs| (other, theirs))) {
            if family(theirs) == family(measurement) && !is_same(theirs, measurement) {
                return Err(Collision::Plugin { name: name(), other: other.clone() });
            }
        }
        Ok(())
    }

    /// A plugin no longer uses any metrics but these.
    fn leave(&mut self, plugin: &str, but: &[Measurement]) {
        self.shown.retain(|_, shown| {
            if !but.iter().any(|kept| is_same(kept, &shown.declared)) {
                shown.users.remove(plugin);
            }
            !shown.users.is_empty()
        });
    }
}

impl Shown {
    fn new(declared: Measurement) -> Self {
        let mut series = BTreeMap::new();
        // Without labels there is one series, which begins at zero; what a gauge is, only the plugin knows.
        if declared.labels.is_empty() && declared.kind != MeasurementKind::Gauge {
            series.insert(Vec::new(), Series::new(&declared));
        }
        Self { declared, users: BTreeSet::new(), series, told: false }
    }

    /// Takes a sample; false if it would be one series too many.
    fn take(&mut self, sample: &contract::Measurement) -> bool {
        let value =
            |key: &String| sample.labels.iter().find(|label| label.key == *key).map(|label| label.value.clone());
        let Some(values) = self.declared.labels.iter().map(value).collect::<Option<Vec<_>>>() else { return true };
        if self.series.len() >= MOST_SERIES && !self.series.contains_key(&values) {
            return false;
        }
        self.series.entry(values).or_insert_with(|| Series::new(&self.declared)).take(sample.value);
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

    fn take(&mut self, value: f64) {
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

/// Shows the metrics of all plugins.
#[derive(Debug)]
pub(super) struct OfPlugins(pub(super) std::sync::Arc<Measurements>);

impl Collector for OfPlugins {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        self.0.state().shown.values().try_for_each(|shown| shown.encode(&mut encoder))
    }
}

/// The name that a metric's parts share: a counter's is without its end.
fn family(measurement: &Measurement) -> &str {
    measurement.name.strip_suffix("_total").unwrap_or(&measurement.name)
}

/// Whether two declarations are of one metric. What they say of it may differ.
fn is_same(a: &Measurement, b: &Measurement) -> bool {
    a.name == b.name && a.kind == b.kind && a.labels == b.labels && a.bounds() == b.bounds()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Format;

    #[test]
    fn the_hosts_own_names_are_kept_for_it() {
        let exposition = Metrics::new().exposition(Format::Classic);
        let names = exposition.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
        let others: Vec<_> = names.filter(|name| !OWN.iter().any(|own| name.starts_with(own))).collect();
        assert!(others.is_empty(), "{others:?}");
    }
}
