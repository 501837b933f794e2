//! A host whose objects look up all Pods, phase by phase.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use kube::api::Patch;
use pilothouse_bench::{process::cpu, setting, table::Measured, times::quantile};
use pilothouse_control_plane::Parts;
use pilothouse_tests::{
    artifacts,
    cluster::{Cluster, Namespace, install_crd},
    host::Host,
    metrics::Samples,
    wait::{Look, eventually},
};
use serde_json::{Value, json};
use tokio::time::{MissedTickBehavior, interval};

/// How long one phase may take.
const PATIENCE: Duration = Duration::from_secs(900);

/// Requests at the same time.
const PARALLEL: usize = 16;

/// How often `/healthz` is asked, and how often the Lease is read.
const HEALTH: Duration = Duration::from_millis(20);
const LEASE: Duration = Duration::from_millis(500);

/// How long nothing happens.
const REST: Duration = Duration::from_secs(10);

/// A host at work.
pub struct Bench {
    cluster: Cluster,
    namespace: Namespace,
    host: Host,
    pods: usize,
    objects: usize,
    changes: usize,
}

/// The rows of one phase: processor time of the host and calls for each change, quantiles of the time of `/healthz`, and the longest time
/// between two renewals of the Lease.
type Rows = [&'static str; 5];

const UNSEEN: Rows = [
    "a Pod changes what no plugin reads: host CPU, ms",
    "a Pod changes what no plugin reads: calls",
    "a Pod changes what no plugin reads: /healthz p50, ms",
    "a Pod changes what no plugin reads: /healthz p99, ms",
    "a Pod changes what no plugin reads: longest between renewals, s",
];

const SEEN: Rows = [
    "a Pod changes its phase: host CPU, ms",
    "a Pod changes its phase: calls",
    "a Pod changes its phase: /healthz p50, ms",
    "a Pod changes its phase: /healthz p99, ms",
    "a Pod changes its phase: longest between renewals, s",
];

/// What was seen of a host during one phase.
#[derive(Default)]
struct Seen {
    /// The times of `/healthz`, in milliseconds, sorted.
    healthy: Vec<f64>,
    /// The longest time between two renewals of the Lease, in seconds.
    longest: f64,
}

impl Bench {
    /// Starts an API server with all Pods and objects, and then a host, and waits until all objects have counted the Pods.
    pub async fn start(measured: &mut Vec<Measured>) -> Result<Self> {
        let (pods, objects) = (setting("LOOKUPS_PODS", 10_000), setting("LOOKUPS_OBJECTS", 50));
        let cluster = Cluster::with(Parts::Api).await?;
        let namespace = cluster.namespace("lookups").await?;
        let crd = artifacts::repository().join("tests/guests/census/crd.yaml");
        install_crd(&namespace.client(), &crd).await?;
        each(pods, async |number| namespace.apply(pod(number)).await.map(drop)).await?;
        each(objects, async |number| namespace.apply(census(number)).await.map(drop)).await?;
        let mut setup = namespace.setup();
        setup.arguments = ["--leader-elect", "--host-namespace", &namespace.name].map(str::to_owned).to_vec();
        let mut host = Host::prepare(setup)?;
        host.install(&artifacts::guest("census")?, "census.wasm")?;
        let started = Instant::now();
        host.resume().await?;
        let bench = Self { cluster, namespace, host, pods, objects, changes: setting("LOOKUPS_CHANGES", 20) };
        bench.until_counted(0).await?;
        let used = cpu(bench.host.pid()?)?;
        measured.extend([
            ("start: all objects have counted the Pods, s", started.elapsed().as_secs_f64()),
            ("start: host CPU, s", used),
            (
                "start: host RSS, MiB",
                bench.counts().await?.sum("process_resident_memory_bytes", &[]) / f64::from(1 << 20),
            ),
        ]);
        Ok(bench)
    }

    /// Nothing happens.
    pub async fn rest(&mut self, measured: &mut Vec<Measured>) -> Result<()> {
        let before = cpu(self.host.pid()?)?;
        tokio::time::sleep(REST).await;
        measured.push(("at rest for 10 s: host CPU, ms", (cpu(self.host.pid()?)? - before) * 1_000.0));
        Ok(())
    }

    /// Pods change, one after the other, in a field that the plugin does not read.
    pub async fn unseen(&mut self, measured: &mut Vec<Measured>) -> Result<()> {
        let change = async |number: usize| {
            let patch = json!({"metadata": {"annotations": {"bench.pilothouse.dev/touched": "yes"}}});
            self.namespace.patch("Pod", &format!("pod-{number}"), patch).await?;
            Ok(())
        };
        measured.extend(self.measure(UNSEEN, change).await?);
        Ok(())
    }

    /// Pods begin to run, one after the other; each time, all objects count them.
    pub async fn seen(&mut self, measured: &mut Vec<Measured>) -> Result<()> {
        let change = async |number: usize| {
            self.run(number).await?;
            self.until_counted(number + 1).await
        };
        measured.extend(self.measure(SEEN, change).await?);
        Ok(())
    }

    /// Ends the host, which would have ended by itself if it had lost its Lease.
    pub async fn end(mut self) -> Result<()> {
        self.host.stop().await?;
        self.cluster.stop().await
    }

    /// What each change costs, until the host has nothing left to do.
    async fn measure(&self, rows: Rows, change: impl AsyncFn(usize) -> Result<()>) -> Result<Vec<Measured>> {
        let calls = async || anyhow::Ok(self.counts().await?.sum("pilothouse_plugin_calls_total", &[]));
        let (used, called) = (cpu(self.host.pid()?)?, calls().await?);
        let changes = async {
            for number in 0..self.changes {
                change(number).await?;
                self.until_done().await?;
            }
            anyhow::Ok(())
        };
        let Seen { healthy, longest } = self.look_during(changes).await?;
        let each = |more: f64| more / self.changes as f64;
        let values = [
            each(cpu(self.host.pid()?)? - used) * 1_000.0,
            each(calls().await? - called),
            quantile(&healthy, 0.5),
            quantile(&healthy, 0.99),
            longest,
        ];
        Ok(rows.into_iter().zip(values).collect())
    }

    /// Looks at the host while something goes on.
    async fn look_during(&self, work: impl Future<Output = Result<()>>) -> Result<Seen> {
        let (mut seen, mut renewed, mut work) = (Seen::default(), self.renewed().await?, std::pin::pin!(work));
        let (mut health, mut lease) = (interval(HEALTH), interval(LEASE));
        health.set_missed_tick_behavior(MissedTickBehavior::Delay);
        lease.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                done = &mut work => {
                    done?;
                    seen.healthy.sort_by(f64::total_cmp);
                    return Ok(seen);
                }
                _ = health.tick() => {
                    let asked = Instant::now();
                    let (status, _) = self.host.get("health", "/healthz").await?;
                    anyhow::ensure!(status == 200, "the host is not healthy: {status}");
                    seen.healthy.push(asked.elapsed().as_secs_f64() * 1_000.0);
                }
                _ = lease.tick() => {
                    let now = self.renewed().await?;
                    seen.longest = seen.longest.max(now.duration_since(renewed).as_secs_f64());
                    renewed = now;
                }
            }
        }
    }

    /// When the Lease was renewed last.
    async fn renewed(&self) -> Result<Timestamp> {
        let leases = self.namespace.list("Lease").await?;
        let renewed = leases.first().and_then(|lease| lease["spec"]["renewTime"].as_str());
        Ok(renewed.context("there is no Lease")?.parse()?)
    }

    /// Waits until the host has reconciled whatever it was woken for.
    async fn until_done(&self) -> Result<()> {
        eventually(PATIENCE, "the host to be done", async || {
            let counts = self.counts().await?;
            let left = counts.sum("workqueue_depth", &[]) + counts.sum("controller_runtime_active_workers", &[]);
            Ok(Look::of(left == 0.0, left))
        })
        .await
    }

    async fn until_counted(&self, running: usize) -> Result<()> {
        let wanted = (json!(self.pods), json!(running));
        let counted =
            |object: &Value| (&object["status"]["pods"], &object["status"]["running"]) == (&wanted.0, &wanted.1);
        eventually(PATIENCE, "all objects to have counted the Pods", async || {
            let done = self.namespace.list("Census").await?.iter().filter(|object| counted(object)).count();
            Ok(Look::of(done == self.objects, format!("{done} have")))
        })
        .await
    }

    async fn run(&self, number: usize) -> Result<()> {
        let api = self.namespace.api("Pod")?;
        let patch = json!({"status": {"phase": "Running"}});
        let name = format!("pod-{number}");
        api.patch_status(&name, &Default::default(), &Patch::Merge(patch)).await.context(name)?;
        Ok(())
    }

    async fn counts(&self) -> Result<Samples> {
        Samples::parse(&self.host.metrics().await?)
    }
}

/// Does something so many times, several at a time.
async fn each(times: usize, work: impl AsyncFn(usize) -> Result<()>) -> Result<()> {
    stream::iter(0..times).map(|number| work(number)).buffer_unordered(PARALLEL).try_collect().await
}

fn pod(number: usize) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("pod-{number}"), "labels": {"app": "load", "number": number.to_string()}},
        "spec": {"containers": [{"name": "app", "image": "registry.example.com/load/app:1.27.3", "env": [
            {"name": "NUMBER", "value": number.to_string()}, {"name": "MODE", "value": "load"},
        ]}]},
    })
}

fn census(number: usize) -> Value {
    json!({
        "apiVersion": "test.pilothouse.dev/v1", "kind": "Census", "metadata": {"name": format!("census-{number}")},
        "spec": {"selector": "app=load"},
    })
}
