//! What is measured, phase by phase, on a fresh control plane.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use anyhow::Result;
use futures::future::try_join_all;
use pilothouse_bench::{
    process::{cpu, until_at_rest},
    table::Measured,
    times::{one_by_one, quantile},
};
use pilothouse_control_plane::Part;
use pilothouse_tests::{
    app_services::{AppServices, api_server},
    cluster::create_namespace,
};
use serde_json::json;

use crate::{host::Host, variant::Variant};

/// Starts of which the median is taken.
const STARTS: usize = 5;

/// An API server at rest uses less than this share of one processor.
const REST: f64 = 0.1;

/// How long it may take to come to rest, as after its start and after a new kind.
const PATIENCE: Duration = Duration::from_secs(60);

/// How much is done.
pub struct Plan {
    /// Objects.
    pub objects: usize,
    /// Changes and repairs, one at a time.
    pub changes: usize,
    /// How long nothing happens.
    pub idle: Duration,
}

/// Runs all phases on one control plane, for each variant in a namespace of its own. Several variants run at the same time,
/// in step wherever the API server must be at rest.
pub async fn run(variants: &[&Variant], plan: &Plan) -> Result<Vec<Vec<Measured>>> {
    let folder = tempfile::tempdir()?;
    let plane = api_server(folder.path().join("control-plane")).await?;
    let client = plane.client().await?;
    let (server, kubeconfig) = (plane.pid(Part::ApiServer).await?, plane.kubeconfig_path());
    let benches = variants.iter().map(async |variant| {
        create_namespace(&client, variant.name).await?;
        let web = AppServices::new(&client, variant.name)?;
        let cache = folder.path().join(variant.name);
        Bench { variant, plan, web, server, kubeconfig: &kubeconfig, cache: &cache }.phases().await
    });
    let measured = try_join_all(benches).await;
    plane.stop().await?;
    measured
}

struct Bench<'a> {
    variant: &'a Variant,
    plan: &'a Plan,
    web: AppServices,
    server: u32,
    kubeconfig: &'a Path,
    cache: &'a Path,
}

/// What a host and the API server had used at some moment.
struct Mark {
    at: Instant,
    host: f64,
    server: f64,
}

impl Bench<'_> {
    async fn phases(&self) -> Result<Vec<Measured>> {
        let mut measured = Vec::new();
        self.warm_up().await?;
        self.until_server_rests().await?;
        self.first(&mut measured).await?;
        let host = self.create(&mut measured).await?;
        let mut used = host.cpu()?;
        host.stop()?;
        let host = self.restart(&mut measured).await?;
        self.touch(&host, &mut measured).await?;
        self.update(&host, &mut measured).await?;
        self.one_at_a_time(&host, &mut measured).await?;
        self.idle(&host, &mut measured).await?;
        used += host.cpu()?;
        host.stop()?;
        measured.push(("whole run: host CPU, s", used));
        Ok(measured)
    }

    async fn start(&self) -> Result<Host> {
        Host::start(self.variant, self.kubeconfig, self.cache).await
    }

    /// Compiles the plugin into the cache, which is no part of what is measured.
    async fn warm_up(&self) -> Result<()> {
        let host = self.start().await?;
        host.counts().await?;
        host.stop()
    }

    /// What the API server does of its own accord costs the processors' caches and time of whoever runs beside it.
    async fn until_server_rests(&self) -> Result<()> {
        until_at_rest(PATIENCE, &[(self.server, REST)]).await
    }

    /// How long a new process takes until the one object that waits for it is done.
    async fn first(&self, measured: &mut Vec<Measured>) -> Result<()> {
        let follower = self.web.follow_objects().await?;
        let mut times = Vec::new();
        for number in 0..STARTS {
            let name = format!("first-{number}");
            self.web.create_one(&name).await?;
            let started = Instant::now();
            let host = self.start().await?;
            let done = follower.until(&name, |object| object["status"]["observedGeneration"] == 1).await;
            times.push(done.saturating_duration_since(started).as_secs_f64() * 1_000.0);
            host.stop()?;
            self.web.delete_one(&name).await?;
        }
        times.sort_by(f64::total_cmp);
        measured.push(("process start to first object done, ms", quantile(&times, 0.5)));
        Ok(())
    }

    fn mark(&self, host: &Host) -> Result<Mark> {
        Ok(Mark { at: Instant::now(), host: host.cpu()?, server: cpu(self.server)? })
    }

    /// What was used since a mark, per object, in milliseconds: the host, the API server.
    fn since(&self, mark: &Mark, host: &Host) -> Result<(f64, f64)> {
        let per_object = 1_000.0 / self.plan.objects as f64;
        Ok(((host.cpu()? - mark.host) * per_object, (cpu(self.server)? - mark.server) * per_object))
    }

    async fn create(&self, measured: &mut Vec<Measured>) -> Result<Host> {
        let objects = self.plan.objects;
        self.web.create(objects).await?;
        self.until_server_rests().await?;
        let before = cpu(self.server)?;
        let started = Instant::now();
        let host = self.start().await?;
        let mark = Mark { at: started, host: 0.0, server: before };
        host.until_writes(3.0 * objects as f64).await?;
        let took = mark.at.elapsed().as_secs_f64();
        let ((own, server), calls) = (self.since(&mark, &host)?, host.calls().await?);
        measured.extend([
            ("create: all children and statuses, s", took),
            ("create: host CPU, ms per object", own),
            ("create: API server CPU, ms per object", server),
            ("create: writes per object", host.writes().await? / objects as f64),
            ("create: calls per object", calls.number / objects as f64),
            ("create: a call, µs", calls.microseconds()),
            ("create: peak RSS, MiB", host.memory()?.1),
        ]);
        Ok(host)
    }

    async fn restart(&self, measured: &mut Vec<Measured>) -> Result<Host> {
        self.until_server_rests().await?;
        let host = self.start().await?;
        host.until_reconciles(self.plan.objects as f64).await?;
        measured.extend([
            ("restart: host CPU, s", host.cpu()?),
            ("restart: a call, µs", host.calls().await?.microseconds()),
            ("restart: writes", host.writes().await?),
            ("restart: peak RSS, MiB", host.memory()?.1),
        ]);
        Ok(host)
    }

    async fn touch(&self, host: &Host, measured: &mut Vec<Measured>) -> Result<()> {
        let objects = self.plan.objects;
        let touch = json!({"metadata": {"annotations": {"bench": "touched"}}});
        for (row, children) in
            [("touch of objects: host CPU, ms each", false), ("touch of children: host CPU, ms each", true)]
        {
            let (mark, reconciles) = (self.mark(host)?, host.reconciles().await?);
            if children {
                self.web.change_children(objects, &touch).await?;
            } else {
                self.web.change_objects(objects, &touch).await?;
            }
            host.until_reconciles(reconciles + objects as f64).await?;
            measured.push((row, self.since(&mark, host)?.0));
        }
        measured.push(("touches: writes", host.writes().await?));
        Ok(())
    }

    async fn update(&self, host: &Host, measured: &mut Vec<Measured>) -> Result<()> {
        let objects = self.plan.objects;
        self.until_server_rests().await?;
        let (mark, writes, calls) = (self.mark(host)?, host.writes().await?, host.calls().await?);
        self.web.change_objects(objects, &json!({"spec": {"image": "example.com/web:2"}})).await?;
        host.until_writes(writes + 2.0 * objects as f64).await?;
        let ((own, server), calls) = (self.since(&mark, host)?, host.calls().await?.since(calls));
        measured.extend([
            ("new image on all: s", mark.at.elapsed().as_secs_f64()),
            ("new image on all: host CPU, ms per object", own),
            ("new image on all: API server CPU, ms per object", server),
            ("new image on all: writes per object", (host.writes().await? - writes) / objects as f64),
            ("new image on all: calls per object", calls.number / objects as f64),
            ("new image on all: a call, µs", calls.microseconds()),
        ]);
        Ok(())
    }

    async fn one_at_a_time(&self, host: &Host, measured: &mut Vec<Measured>) -> Result<()> {
        let follower = self.web.follow_children().await?;
        self.until_server_rests().await?;
        let (mark, calls) = (host.cpu()?, host.calls().await?);
        let image = |number| format!("example.com/web:one-{number}");
        let object = |number| number % self.plan.objects;
        let change = async |number| self.web.change(&follower, object(number), &image(number)).await;
        let changes = one_by_one(self.plan.changes, change).await?;
        let calls = host.calls().await?.since(calls);
        measured.extend([
            ("one change: p50, ms", quantile(&changes, 0.5)),
            ("one change: p90, ms", quantile(&changes, 0.9)),
            ("one change: p99, ms", quantile(&changes, 0.99)),
            ("one change: host CPU, ms", (host.cpu()? - mark) * 1_000.0 / self.plan.changes as f64),
            ("one change: calls", calls.number / self.plan.changes as f64),
            ("one change: a call, µs", calls.microseconds()),
        ]);
        let drift = async |number| self.web.drift(&follower, object(number)).await;
        let drifts = one_by_one(self.plan.changes, drift).await?;
        measured.extend([("drift: p50, ms", quantile(&drifts, 0.5)), ("drift: p99, ms", quantile(&drifts, 0.99))]);
        Ok(())
    }

    async fn idle(&self, host: &Host, measured: &mut Vec<Measured>) -> Result<()> {
        let (mark, writes, calls) = (self.mark(host)?, host.writes().await?, host.calls().await?);
        tokio::time::sleep(self.plan.idle).await;
        measured.extend([
            ("idle: host CPU, s", host.cpu()? - mark.host),
            ("idle: writes", host.writes().await? - writes),
            ("idle: calls", host.calls().await?.since(calls).number),
            ("idle: RSS, MiB", host.memory()?.0),
            ("any time: peak RSS, MiB", host.memory()?.1),
        ]);
        Ok(())
    }
}
