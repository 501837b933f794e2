//! The work queue's metrics, under client-go's names. Counts nothing itself; reads the queue's statistics when scraped.

use std::{fmt, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet},
    metrics::MetricType,
};

use super::labels::QueueLabels;
use crate::queue::{BUCKET_BOUNDS, Durations, Queue, QueueLoad, QueueSnapshot, QueueStats};

/// The values that controller-runtime has for the priorities of its queue: for a change and for bulk work.
const PRIORITIES: [&str; 2] = ["0", "-100"];

/// Exposes a queue's statistics.
pub(super) struct WorkQueueCollector(pub(super) Arc<Queue>);

impl fmt::Debug for WorkQueueCollector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WorkQueueCollector")
    }
}

impl Collector for WorkQueueCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        use MetricType::{Counter, Gauge, Histogram};
        type Show = fn(&mut MetricEncoder<'_>, &QueueStats, &QueueLoad) -> fmt::Result;
        let families: [(&str, &str, MetricType, Show); 6] = [
            ("adds", "Keys that began to wait.", Counter, |metric, stats, _| count(metric, stats.adds)),
            ("retries", "Keys that come again later.", Counter, |metric, stats, _| count(metric, stats.retries)),
            ("queue_duration_seconds", "Time that keys wait.", Histogram, |metric, stats, _| {
                durations(metric, &stats.waited)
            }),
            ("work_duration_seconds", "Time that keys are worked on.", Histogram, |metric, stats, _| {
                durations(metric, &stats.worked)
            }),
            ("unfinished_work_seconds", "Time of the work under way, all together.", Gauge, |metric, _, load| {
                metric.encode_gauge(&load.unfinished.as_secs_f64())
            }),
            ("longest_running_processor_seconds", "Time of the longest work under way.", Gauge, |metric, _, load| {
                metric.encode_gauge(&load.longest.as_secs_f64())
            }),
        ];
        let stats = self.0.stats();
        if stats.is_empty() {
            return Ok(());
        }
        let help = "Keys that wait, by priority: 0 for changes, -100 for bulk work.";
        let mut depth = encoder.encode_descriptor("workqueue_depth", help, None, Gauge)?;
        for (plugin, QueueSnapshot { load, .. }) in &stats {
            for (priority, waiting) in PRIORITIES.iter().zip([load.live, load.bulk]) {
                let labels = (QueueLabels::new(plugin), [("priority", *priority)]);
                depth.encode_family(&labels)?.encode_gauge(&waiting)?;
            }
        }
        for (name, help, kind, show) in families {
            let name = format!("workqueue_{name}");
            let mut metric = encoder.encode_descriptor(&name, help, None, kind)?;
            for (plugin, QueueSnapshot { stats, load }) in &stats {
                show(&mut metric.encode_family(&QueueLabels::new(plugin))?, stats, load)?;
            }
        }
        Ok(())
    }
}

fn count(metric: &mut MetricEncoder<'_>, value: u64) -> fmt::Result {
    metric.encode_counter::<NoLabelSet, _, f64>(&value, None)
}

fn durations(metric: &mut MetricEncoder<'_>, durations: &Durations) -> fmt::Result {
    let bounds = BUCKET_BOUNDS.into_iter().chain([f64::INFINITY]);
    let buckets: Vec<_> = bounds.zip(durations.counts).collect();
    metric.encode_histogram::<NoLabelSet>(durations.sum, durations.counts.iter().sum(), &buckets, None)
}
