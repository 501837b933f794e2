//! What Prometheus and its adapter do: it reads the metrics of the ready servers, and serves to autoscalers what the guide's rules make of
//! them.

use std::{
    collections::{BTreeMap, VecDeque},
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use pilothouse_tests::{http::ask, metrics_api::MetricsApi};
use tokio::task::AbortHandle;

use super::{node::Node, words};

/// The metrics that autoscalers read, and those of the engine that they are made of.
const LATENCY: (&str, &str) = (words::LATENCY, "vllm:time_to_first_token_seconds_bucket");
const QUEUE: (&str, &str) = (words::QUEUE, "vllm:num_requests_waiting");

/// The interval between two readings, and how many of them a rate is made of.
const INTERVAL: Duration = Duration::from_millis(300);
const WINDOW: usize = 8;

/// The share of requests that a latency is about.
const QUANTILE: f64 = 0.95;

/// A Prometheus at work. Stops when it is dropped.
pub struct Scraper(AbortHandle);

/// One reading of a server: the counts of its buckets by their bounds, and how many requests wait.
#[derive(Clone, Default)]
struct Reading {
    buckets: Buckets,
    waiting: f64,
}

/// The counts of buckets by the bits of their upper bounds, whose order is that of the bounds: none is negative.
type Buckets = BTreeMap<u64, f64>;

impl Scraper {
    /// Begins to read.
    pub fn start(node: &Arc<Node>, api: &Arc<MetricsApi>) -> Self {
        let (node, api) = (node.clone(), api.clone());
        let work = tokio::spawn(async move {
            let mut windows = BTreeMap::new();
            loop {
                read_all(&node, &mut windows).await;
                serve(&api, &windows);
                tokio::time::sleep(INTERVAL).await;
            }
        });
        Self(work.abort_handle())
    }
}

impl Drop for Scraper {
    fn drop(&mut self) {
        self.0.abort();
    }
}

type Windows = BTreeMap<SocketAddr, VecDeque<Reading>>;

/// Reads all servers that are ready. One that does not answer keeps what it had.
async fn read_all(node: &Node, windows: &mut Windows) {
    let ready = node.ready();
    windows.retain(|server, _| ready.contains(server));
    for server in ready {
        if let Ok(reading) = read(&server).await {
            // A server that is new has counted nothing before.
            let window = windows.entry(server).or_insert_with(|| VecDeque::from([Reading::default()]));
            window.push_back(reading);
            if window.len() > WINDOW {
                window.pop_front();
            }
        }
    }
}

async fn read(server: &SocketAddr) -> Result<Reading> {
    let exposition = ask(server, "GET /metrics HTTP/1.1\r\n", "").await?.body;
    let mut reading = Reading::default();
    for line in exposition.lines().filter(|line| !line.starts_with('#')) {
        let (series, value) = line.rsplit_once(' ').context("a line without a value")?;
        let (name, labels) = series.split_once('{').context("a series without labels")?;
        let value: f64 = value.parse()?;
        if name == QUEUE.1 {
            reading.waiting = value;
        } else if name == LATENCY.1 {
            let bound = labels.split("le=\"").nth(1).and_then(|rest| rest.split('"').next()).context("no bound")?;
            reading.buckets.insert(bound.parse::<f64>()?.to_bits(), value);
        }
    }
    Ok(reading)
}

/// Serves what the servers together say; nothing while there is none.
fn serve(api: &MetricsApi, windows: &Windows) {
    if windows.is_empty() {
        [LATENCY.0, QUEUE.0].iter().for_each(|metric| api.remove(metric));
        return;
    }
    let mut counts = Buckets::new();
    let mut waiting = 0.0;
    for window in windows.values() {
        let (Some(first), Some(last)) = (window.front(), window.back()) else { continue };
        waiting += last.waiting;
        for (bound, count) in &last.buckets {
            *counts.entry(*bound).or_default() += count - first.buckets.get(bound).copied().unwrap_or_default();
        }
    }
    api.set(LATENCY.0, &format!("{}m", (quantile(&counts) * 1000.0).round()));
    api.set(QUEUE.0, &waiting.to_string());
}

/// The quantile as `histogram_quantile` computes it; zero where nothing was counted.
fn quantile(counts: &Buckets) -> f64 {
    let all = counts.last_key_value().map_or(0.0, |(_, count)| *count);
    let wanted = all * QUANTILE;
    let (mut below, mut counted) = (0.0, 0.0);
    for (bound, count) in counts.iter().map(|(bits, count)| (f64::from_bits(*bits), *count)) {
        if count >= wanted && count > 0.0 {
            let share = if count > counted { (wanted - counted) / (count - counted) } else { 0.0 };
            return if bound.is_finite() { below + (bound - below) * share } else { below };
        }
        (below, counted) = (bound, count);
    }
    0.0
}
