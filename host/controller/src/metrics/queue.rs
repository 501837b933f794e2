//! The queue's numbers, under the names of client-go's work queues.

use std::{fmt, sync::Arc};

use prometheus_client::{
    collector::Collector,
    encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet},
    metrics::MetricType,
};

use super::labels::Queued;
use crate::queue::{BOUNDS, Durations, Load, Queue, Tally};

/// What controller-runtime calls the priorities of its queue: that of a change, and that of bulk work.
const PRIORITIES: [&str; 2] = ["0", "-100"];

/// Shows a queue.
pub(super) struct WorkQueue(pub(super) Arc<Queue>);

impl fmt::Debug for WorkQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WorkQueue")
    }
}

impl Collector for WorkQueue {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        use MetricType::{Counter, Gauge, Histogram};
        type Show = fn(&mut MetricEncoder<'_>, &Tally, &Load) -> fmt::Result;
        let families: [(&str, &str, MetricType, Show); 6] = [
            ("adds", "Keys that began to wait.", Counter, |metric, tally, _| count(metric, tally.adds)),
            ("retries", "Keys that come again later.", Counter, |metric, tally, _| count(metric, tally.retries)),
            ("queue_duration_seconds", "Time that keys wait.", Histogram, |metric, tally, _| {
                durations(metric, &tally.waited)
            }),
            ("work_duration_seconds", "Time that keys are worked on.", Histogram, |metric, tally, _| {
                durations(metric, &tally.worked)
            }),
            ("unfinished_work_seconds", "Time of the work under way, all together.", Gauge, |metric, _, load| {
                metric.encode_gauge(&load.unfinished.as_secs_f64())
            }),
            ("longest_running_processor_seconds", "Time of the longest work under way.", Gauge, |metric, _, load| {
                metric.encode_gauge(&load.longest.as_secs_f64())
            }),
        ];
        let tallies = self.0.tallies();
        if tallies.is_empty() {
            return Ok(());
        }
        let help = "Keys that wait, by priority: 0 for changes, -100 for bulk work.";
        let mut depth = encoder.encode_descriptor("workqueue_depth", help, None, Gauge)?;
        for (plugin, (_, load)) in &tallies {
            for (priority, waiting) in PRIORITIES.iter().zip([load.live, load.bulk]) {
                let labels = (Queued::new(plugin), [("priority", *priority)]);
                depth.encode_family(&labels)?.encode_gauge(&waiting)?;
            }
        }
        for (name, help, kind, show) in families {
            let name = format!("workqueue_{name}");
            let mut metric = encoder.encode_descriptor(&name, help, None, kind)?;
            for (plugin, (tally, load)) in &tallies {
                show(&mut metric.encode_family(&Queued::new(plugin))?, tally, load)?;
            }
        }
        Ok(())
    }
}

fn count(metric: &mut MetricEncoder<'_>, value: u64) -> fmt::Result {
    metric.encode_counter::<NoLabelSet, _, f64>(&value, None)
}

fn durations(metric: &mut MetricEncoder<'_>, durations: &Durations) -> fmt::Result {
    let bounds = BOUNDS.into_iter().chain([f64::INFINITY]);
    let buckets: Vec<_> = bounds.zip(durations.counts).collect();
    metric.encode_histogram::<NoLabelSet>(durations.sum, durations.counts.iter().sum(), &buckets, None)
}
