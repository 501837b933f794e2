//! What models cost: an edit of one that many LLMDeployments serve, and one more LLMDeployment in a namespace with many models. It prints
//! how long it takes and what the host uses for it, for more and more objects: a cost that does not grow with the number stays the same
//! from line to line. It fails where an edit takes too long, or costs more for each of many than for each of few. `make models` builds what
//! it needs and runs it; without `PILOTHOUSE_BIN` it does nothing.
//!
//!   MODELS_DEPLOYMENTS=1000 MODELS_MODELS=100 PILOTHOUSE_BIN=FILE cargo bench -p pilothouse-bench --bench models

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use pilothouse_bench::{is_asked_for, process::cpu, setting};
use pilothouse_control_plane::Parts;
use pilothouse_tests::{
    artifacts,
    cluster::{Cluster, Namespace, install_crd},
    host::Host,
    metrics::Samples,
    wait::{Look, eventually},
};
use serde_json::{Value, json};

/// The kinds that are installed, and the plugins that serve them.
const CRDS: [&str; 2] = ["crds/llmmodels.llm.example.com.yaml", "crds/llmdeployments.llm.example.com.yaml"];
const PLUGINS: [&str; 2] = ["llm-model", "llm-deployment"];

const MODEL: &str = "LLMModel.llm.example.com";

/// The number of requests at the same time.
const PARALLEL: usize = 32;

/// How long a step may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// How long an edit may take to arrive everywhere.
const LIMIT: Duration = Duration::from_secs(20);

/// How much more processor time an edit may take for each of all LLMDeployments than for each of a quarter of them: this share, and so
/// many milliseconds, which are the least that can be told of few.
const GROWTH: f64 = 1.5;
const GROWTH_MILLIS: f64 = 0.2;

/// The edits, and the LLMDeployments that come, of which the mean is told.
const REPEATS: usize = 5;

fn main() -> Result<()> {
    if !is_asked_for() {
        return Ok(());
    }
    if std::env::var_os("PILOTHOUSE_BIN").is_none() {
        eprintln!("models: left out; `make models` runs it");
        return Ok(());
    }
    let (deployments, models) = (setting("MODELS_DEPLOYMENTS", 1_000), setting("MODELS_MODELS", 100));
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(run(deployments, models))
}

async fn run(deployments: usize, models: usize) -> Result<()> {
    let cluster = Cluster::with(Parts::Api).await?;
    println!(
        "| models | deployments | an edit reaches all, s | host CPU for it, ms for each | one more deployment: host CPU, ms | its calls |"
    );
    println!("|---|---|---|---|---|---|");
    let mut lines = Vec::new();
    for (models, deployments) in [
        (1, deployments / 4),
        (1, deployments / 2),
        (1, deployments),
        (models / 10, deployments),
        (models, deployments),
    ] {
        lines.push(measure(&cluster, models.max(1), deployments.max(1)).await?);
    }
    cluster.stop().await?;
    judge(&lines)
}

/// What an edit of a model cost in one namespace.
struct Line {
    models: usize,
    /// How long the slowest one took to reach all.
    slowest: Duration,
    /// The processor time of the host for each LLMDeployment of the model, in milliseconds.
    cpu: f64,
}

/// Fails where an edit takes too long, or where the cost for each of the LLMDeployments of one model grows with their number.
fn judge(lines: &[Line]) -> Result<()> {
    let slowest = lines.iter().map(|line| line.slowest).max().unwrap_or_default();
    ensure!(slowest < LIMIT, "an edit took {slowest:?} to reach all");
    let of_one: Vec<_> = lines.iter().filter(|line| line.models == 1).map(|line| line.cpu).collect();
    if let [few, .., many] = of_one[..] {
        let limit = few * GROWTH + GROWTH_MILLIS;
        ensure!(many <= limit, "an edit costs {many:.2} ms of CPU for each of many, and {few:.2} ms for each of few");
    }
    Ok(())
}

/// Measures one namespace and prints its line.
async fn measure(cluster: &Cluster, models: usize, deployments: usize) -> Result<Line> {
    let bench = Bench::start(cluster, models, deployments).await?;
    let (mut took, mut slowest) = (Duration::ZERO, Duration::ZERO);
    let before = bench.used().await?;
    for turn in 0..REPEATS {
        let time = bench.edit(turn).await?;
        (took, slowest) = (took + time, slowest.max(time));
    }
    let edits = bench.used().await?.since(before);
    let before = bench.used().await?;
    for turn in 0..REPEATS {
        bench.add_and_remove(turn).await?;
    }
    let one_more = bench.used().await?.since(before);
    let each = |total: f64, of: usize| total / of as f64;
    let cpu = each(edits.cpu * 1_000.0, REPEATS * bench.served());
    println!(
        "| {models} | {deployments} | {:.2} | {cpu:.2} | {:.1} | {:.0} |",
        each(took.as_secs_f64(), REPEATS),
        each(one_more.cpu * 1_000.0, REPEATS),
        each(one_more.calls, REPEATS),
    );
    bench.stop().await?;
    Ok(Line { models, slowest, cpu })
}

/// A host and the objects of one namespace.
struct Bench {
    namespace: Namespace,
    host: Host,
    models: usize,
    deployments: usize,
}

/// What the host has used and done.
#[derive(Clone, Copy)]
struct Used {
    cpu: f64,
    calls: f64,
}

impl Used {
    fn since(self, before: Self) -> Self {
        Self { cpu: self.cpu - before.cpu, calls: self.calls - before.calls }
    }
}

impl Bench {
    async fn start(cluster: &Cluster, models: usize, deployments: usize) -> Result<Self> {
        let namespace = cluster.namespace(&format!("models-{models}-{deployments}")).await?;
        for crd in CRDS {
            install_crd(&namespace.client(), &artifacts::repository().join(crd)).await?;
        }
        let objects = (0..models).map(model).chain((0..deployments).map(|number| deployment(number, models)));
        let applies = objects.map(|object| namespace.apply(object));
        stream::iter(applies).buffer_unordered(PARALLEL).try_collect::<Vec<_>>().await?;
        let host = Host::prepare(namespace.setup())?;
        for plugin in PLUGINS {
            host.install(&artifacts::plugin(plugin)?, &format!("{plugin}.wasm"))?;
        }
        let mut bench = Self { namespace, host, models, deployments };
        bench.host.resume().await?;
        bench.host.ready().await?;
        bench.until_all_have("a:1", deployments).await?;
        bench.at_rest().await?;
        Ok(bench)
    }

    /// How many deployments the first model has.
    fn served(&self) -> usize {
        self.deployments.div_ceil(self.models)
    }

    /// Changes the image of the first model, and returns after how long all its Deployments have it.
    async fn edit(&self, turn: usize) -> Result<Duration> {
        let image = format!("a:edit-{turn}");
        let started = Instant::now();
        self.namespace.patch(MODEL, "model-0", json!({"spec": {"image": image}})).await?;
        self.until_all_have(&image, self.served()).await?;
        let took = started.elapsed();
        self.at_rest().await?;
        Ok(took)
    }

    /// One more deployment comes and goes.
    async fn add_and_remove(&self, turn: usize) -> Result<()> {
        let number = self.deployments + turn;
        let object = deployment(number, self.models);
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        self.namespace.apply(object).await?;
        let has_address = |object: &Value| object["status"]["url"].as_str().is_some_and(|url| !url.is_empty());
        self.namespace.until("LLMDeployment", &name, "to have its Service", has_address).await?;
        self.at_rest().await?;
        self.namespace.delete("LLMDeployment", &name).await?;
        self.namespace.until_gone("LLMDeployment", &name).await?;
        self.at_rest().await
    }

    async fn until_all_have(&self, image: &str, count: usize) -> Result<()> {
        eventually(PATIENCE, &format!("{count} Deployments with {image}"), async || {
            let deployments = self.namespace.list("Deployment").await?;
            let has = |found: &&Value| found["spec"]["template"]["spec"]["containers"][0]["image"] == image;
            let have = deployments.iter().filter(has).count();
            Ok(Look::of(have == count, have))
        })
        .await
    }

    async fn at_rest(&self) -> Result<()> {
        eventually(PATIENCE, "the host to be at rest", async || {
            let now = Samples::parse(&self.host.metrics().await?)?;
            let busy = now.sum("workqueue_depth", &[]) + now.sum("workqueue_unfinished_work_seconds", &[]);
            Ok(Look::of(busy == 0.0, busy))
        })
        .await
    }

    async fn used(&self) -> Result<Used> {
        let calls = Samples::parse(&self.host.metrics().await?)?.sum("pilothouse_plugin_call_seconds_count", &[]);
        Ok(Used { cpu: cpu(self.host.pid()?)?, calls })
    }

    async fn stop(mut self) -> Result<()> {
        self.host.stop().await
    }
}

fn model(number: usize) -> Value {
    json!({
        "apiVersion": "llm.example.com/v1alpha1", "kind": "LLMModel", "metadata": {"name": format!("model-{number}")},
        "spec": {"modelName": "small", "image": "a:1"},
    })
}

fn deployment(number: usize, models: usize) -> Value {
    json!({
        "apiVersion": "llm.example.com/v1alpha1", "kind": "LLMDeployment",
        "metadata": {"name": format!("chat-{number:05}")},
        "spec": {"modelRef": format!("model-{}", number % models), "replicas": 2},
    })
}
