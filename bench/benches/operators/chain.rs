//! A host at work with the plugins of the chain: what is measured, phase by phase.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams, PostParams},
};
use pilothouse_bench::{
    process::{cpu, memory, until_at_rest},
    table::Measured,
    times::{one_by_one, quantile},
};
use pilothouse_control_plane::Parts;
use pilothouse_tests::{
    app_services::Follower,
    cluster::{Cluster, Namespace},
    host::Host,
    metrics::Samples,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::links::{self, PLUGINS};

/// How long one phase may take.
const PATIENCE: Duration = Duration::from_secs(600);

/// A host at rest uses less than this share of one processor.
const REST: f64 = 0.05;

/// How long nothing happens.
const IDLE: Duration = Duration::from_secs(20);

/// How many objects are created at once.
const PARALLEL: usize = 16;

/// A host with its plugins.
pub struct Chain {
    cluster: Cluster,
    namespace: Namespace,
    client: Client,
    first: Api<DynamicObject>,
    last: Follower,
    host: Host,
    /// The machine code of the plugins.
    _cache: TempDir,
}

impl Chain {
    /// Starts an API server with all kinds, and a host with all plugins, whose machine code is in the cache.
    pub async fn start() -> Result<Self> {
        let cluster = Cluster::with(Parts::Api).await?;
        let namespace = cluster.namespace("operators").await?;
        let client = namespace.client();
        eprintln!("operators: installing {} kinds", PLUGINS + 1);
        links::install_kinds(&client).await?;
        let first = links::api(&client, &namespace.name, 0);
        let last = Follower::of(&links::api(&client, &namespace.name, PLUGINS)).await?;
        let cache = tempfile::tempdir()?;
        let mut setup = namespace.setup();
        setup.cache = cache.path().join("cache");
        let mut host = Host::prepare(setup)?;
        links::install_plugins(&host)?;
        eprintln!("operators: compiling {PLUGINS} plugins");
        host.resume().await?;
        host.ready_within(PATIENCE).await?;
        Ok(Self { cluster, namespace, client, first, last, host, _cache: cache })
    }

    /// Creates objects of the first kind, until the last kind has as many.
    pub async fn create(&self, objects: usize, measured: &mut Vec<Measured>) -> Result<()> {
        eprintln!("operators: {objects} objects of each of {PLUGINS} kinds");
        let (began, used) = (Instant::now(), cpu(self.host.pid()?)?);
        let names: Vec<_> = (0..objects).map(name).collect();
        let create = async |name: &String| {
            let object = json!({
                "apiVersion": "links.pilothouse.dev/v1", "kind": "Link000", "metadata": {"name": name}, "spec": {"value": 0},
            });
            self.first.create(&PostParams::default(), &serde_json::from_value(object)?).await?;
            anyhow::Ok(())
        };
        stream::iter(&names).map(create).buffer_unordered(PARALLEL).try_collect::<()>().await?;
        let all = async {
            for name in &names {
                self.last.until(name, |_| true).await;
            }
        };
        tokio::time::timeout(PATIENCE, all).await.context("not all objects get to the end of the chain")?;
        let reconciled = (objects * PLUGINS) as f64;
        measured.extend([
            ("create: all objects, s", began.elapsed().as_secs_f64()),
            ("create: host CPU, ms per object", (cpu(self.host.pid()?)? - used) * 1_000.0 / reconciled),
        ]);
        self.until_at_rest().await
    }

    /// Changes one object of the first kind after the other, each time until the change is at the end of the chain.
    pub async fn change(&self, changes: usize, measured: &mut Vec<Measured>) -> Result<()> {
        let change = async |number: usize| {
            let (name, value) = (name(0), number + 1);
            let patch = json!({"spec": {"value": value}});
            let began = Instant::now();
            self.first.patch(&name, &PatchParams::default(), &Patch::Merge(patch)).await?;
            let arrived = self.last.until(&name, move |object: &Value| object["spec"]["value"] == value).await;
            Ok(arrived.saturating_duration_since(began))
        };
        let took = one_by_one(changes, change).await?;
        let hop = |share| quantile(&took, share) / PLUGINS as f64;
        measured.extend([("a change: p50 of a hop, ms", hop(0.5)), ("a change: p99 of a hop, ms", hop(0.99))]);
        self.until_at_rest().await
    }

    /// Starts the host again.
    pub async fn restart(&mut self, measured: &mut Vec<Measured>) -> Result<()> {
        self.host.stop().await?;
        let began = Instant::now();
        self.host.resume().await?;
        self.host.ready().await?;
        let pid = self.host.pid()?;
        measured.extend([
            ("restart: ready, ms", began.elapsed().as_secs_f64() * 1_000.0),
            ("restart: host CPU until ready, ms", cpu(pid)? * 1_000.0),
        ]);
        self.until_at_rest().await?;
        measured.push(("restart: host CPU until at rest, s", cpu(pid)?));
        Ok(())
    }

    /// What all need while nothing happens.
    pub async fn rest(&self, measured: &mut Vec<Measured>) -> Result<()> {
        let (pid, writes) = (self.host.pid()?, self.writes().await?);
        let used = cpu(pid)?;
        tokio::time::sleep(IDLE).await;
        let (now, most) = memory(pid)?;
        measured.extend([
            ("at rest: RSS, MiB", now),
            ("at any time: RSS, MiB", most),
            ("at rest: share of a processor, %", (cpu(pid)? - used) / IDLE.as_secs_f64() * 100.0),
            ("at rest: writes", self.writes().await? - writes),
        ]);
        Ok(())
    }

    /// Ends all.
    pub async fn end(mut self) -> Result<()> {
        self.host.stop().await?;
        drop((self.last, self.first, self.client, self.namespace));
        self.cluster.stop().await
    }

    async fn writes(&self) -> Result<f64> {
        Ok(Samples::parse(&self.host.metrics().await?)?.sum("rest_client_requests_total", &[("method", "PATCH")]))
    }

    async fn until_at_rest(&self) -> Result<()> {
        until_at_rest(PATIENCE, &[(self.host.pid()?, REST)]).await
    }
}

fn name(number: usize) -> String {
    format!("object-{number}")
}
