//! One of those that are compared: an operator on a control plane of its own, with objects that it makes real, changes and repairs.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use futures::FutureExt;
use kube::Client;
use pilothouse_bench::{
    process::{Process, cpu, until_at_rest},
    table::Measured,
    times::{one_by_one, quantile},
};
use pilothouse_control_plane::{ControlPlane, Part};
use pilothouse_tests::{
    app_services::{AppServices, Follower, api_server},
    cluster::create_namespace,
};
use serde_json::json;
use tempfile::TempDir;

/// How long the work on all objects may take, and how long it may take to come to rest.
const PATIENCE: Duration = Duration::from_secs(300);

/// At rest, an operator and an API server use less than these shares of a processor.
const OPERATOR_AT_REST: f64 = 0.02;
const SERVER_AT_REST: f64 = 0.1;

/// How much is done in a round.
pub struct Plan {
    /// Objects that each round creates, changes and repairs.
    pub objects: usize,
    /// Changes and repairs, one at a time.
    pub changes: usize,
    /// How long nothing happens.
    pub idle: Duration,
}

/// An operator at work.
pub struct Contender {
    /// What it is called in the table.
    pub name: &'static str,
    command: Command,
    operator: Process,
    client: Client,
    server: u32,
    etcd: u32,
    plane: ControlPlane,
    folder: TempDir,
}

/// The rows of work that is done one by one: quantiles, and the processor time of all.
type OneByOne = [&'static str; 5];

const CHANGE: OneByOne = [
    "one change: p50, ms",
    "one change: p90, ms",
    "one change: p99, ms",
    "one change: operator CPU, ms",
    "one change: total CPU, ms",
];

const REPAIR: OneByOne = [
    "one repair: p50, ms",
    "one repair: p90, ms",
    "one repair: p99, ms",
    "one repair: operator CPU, ms",
    "one repair: total CPU, ms",
];

/// The rows of work on all objects: how long it takes, and what is used for each until all is at rest again.
type OnAll = [&'static str; 3];

const CREATE: OnAll = ["create all: s", "create all: operator CPU, ms each", "create all: total CPU, ms each"];
const CHANGE_ALL: OnAll = ["change all: s", "change all: operator CPU, ms each", "change all: total CPU, ms each"];
const REPAIR_ALL: OnAll = ["repair all: s", "repair all: operator CPU, ms each", "repair all: total CPU, ms each"];
const TOUCH_ALL: OnAll = ["touch all: s", "touch all: operator CPU, ms each", "touch all: total CPU, ms each"];
const RESTART: OnAll = ["restart: s", "restart: operator CPU, ms for each", "restart: total CPU, ms for each"];
const IDLE: OnAll = ["idle: s", "idle: operator CPU, ms", "idle: total CPU, ms"];

/// The processor time that was used up to now, in seconds.
#[derive(Clone, Copy)]
struct Used {
    operator: f64,
    server: f64,
    etcd: f64,
}

impl Used {
    fn since(self, before: Self) -> Self {
        Self {
            operator: self.operator - before.operator,
            server: self.server - before.server,
            etcd: self.etcd - before.etcd,
        }
    }

    /// That of the operator and that of all together, in milliseconds for each of so many.
    fn each(self, number: usize) -> [f64; 2] {
        [self.operator, self.operator + self.server + self.etcd].map(|used| used * 1_000.0 / number as f64)
    }
}

impl Contender {
    /// Starts a control plane and the operator, and waits until it is at rest.
    pub async fn start(name: &'static str, mut command: Command) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let plane = api_server(folder.path().join("control-plane")).await?;
        let client = plane.client().await?;
        let (server, etcd) = (plane.pid(Part::ApiServer).await?, plane.pid(Part::Etcd).await?);
        let operator = Process::start(command.env("KUBECONFIG", plane.kubeconfig_path()))?;
        let contender = Self { name, command, operator, client, server, etcd, plane, folder };
        contender.at_rest().await?;
        Ok(contender)
    }

    /// All kinds of work, on objects in a namespace of its own.
    pub async fn round(&mut self, round: usize, plan: &Plan) -> Result<Vec<Measured>> {
        let namespace = format!("round-{round}");
        create_namespace(&self.client, &namespace).await?;
        let web = AppServices::new(&self.client, &namespace)?;
        let (objects, children) = (web.follow_objects().await?, web.follow_children().await?);
        let mut measured = self.on_all(CREATE, plan.objects, create(&web, &objects, plan.objects)).await?;
        measured.extend(self.one_at_a_time(&web, &children, plan).await?);
        measured.extend(self.all_at_once(&web, &children, plan).await?);
        // It looks at the objects of all rounds.
        measured.extend(self.restart((round + 1) * plan.objects).await?);
        let nothing = tokio::time::sleep(plan.idle).map(Ok);
        measured.extend(self.on_all(IDLE, 1, nothing).await?);
        Ok(measured)
    }

    async fn one_at_a_time(&self, web: &AppServices, children: &Follower, plan: &Plan) -> Result<Vec<Measured>> {
        let object = |number| number % plan.objects;
        let image = |number| format!("example.com/web:one-{number}");
        let change = async |number| web.change(children, object(number), &image(number)).await;
        let repair = async |number| web.drift(children, object(number)).await;
        let mut measured = self.one_by_one(CHANGE, plan.changes, change).await?;
        measured.extend(self.one_by_one(REPAIR, plan.changes, repair).await?);
        Ok(measured)
    }

    async fn all_at_once(&self, web: &AppServices, children: &Follower, plan: &Plan) -> Result<Vec<Measured>> {
        let image = "example.com/web:all";
        let change = web.each_number(plan.objects, async |number| web.change(children, number, image).await.map(drop));
        let mut measured = self.on_all(CHANGE_ALL, plan.objects, change).await?;
        let repair = web.each_number(plan.objects, async |number| web.drift(children, number).await.map(drop));
        measured.extend(self.on_all(REPAIR_ALL, plan.objects, repair).await?);
        let touch = json!({"metadata": {"annotations": {"bench": "touched"}}});
        let touched = web.change_objects(plan.objects, &touch);
        measured.extend(self.on_all(TOUCH_ALL, plan.objects, touched).await?);
        Ok(measured)
    }

    /// A new process of the operator, until it is at rest.
    async fn restart(&mut self, objects: usize) -> Result<Vec<Measured>> {
        self.operator.end()?;
        self.operator = Process::start(&mut self.command)?;
        let before = Used { operator: 0.0, ..self.used()? };
        let started = Instant::now();
        self.at_rest().await?;
        Ok(rows(RESTART, started.elapsed(), objects, self.used()?.since(before)))
    }

    async fn one_by_one(
        &self,
        rows: OneByOne,
        times: usize,
        work: impl AsyncFn(usize) -> Result<Duration>,
    ) -> Result<Vec<Measured>> {
        let before = self.used()?;
        let took = one_by_one(times, work).await.with_context(|| format!("with {}", self.name))?;
        self.at_rest().await?;
        let [operator, total] = self.used()?.since(before).each(times);
        let values = [quantile(&took, 0.5), quantile(&took, 0.9), quantile(&took, 0.99), operator, total];
        Ok(rows.into_iter().zip(values).collect())
    }

    async fn on_all(
        &self,
        names: OnAll,
        objects: usize,
        work: impl Future<Output = Result<()>>,
    ) -> Result<Vec<Measured>> {
        let (before, started) = (self.used()?, Instant::now());
        let done = tokio::time::timeout(PATIENCE, work).await;
        done.with_context(|| format!("{} does not get done: {}", self.name, names[0]))??;
        let took = started.elapsed();
        self.at_rest().await?;
        Ok(rows(names, took, objects, self.used()?.since(before)))
    }

    fn used(&self) -> Result<Used> {
        Ok(Used { operator: self.operator.cpu()?, server: cpu(self.server)?, etcd: cpu(self.etcd)? })
    }

    /// Waits until nobody works any more.
    async fn at_rest(&self) -> Result<()> {
        until_at_rest(PATIENCE, &[(self.operator.pid(), OPERATOR_AT_REST), (self.server, SERVER_AT_REST)]).await
    }

    /// Ends the operator and its control plane.
    pub async fn stop(mut self) -> Result<()> {
        self.operator.end()?;
        self.plane.stop().await?;
        Ok(self.folder.close()?)
    }
}

/// Creates so many objects, and waits until all are reported on.
async fn create(web: &AppServices, follower: &Follower, objects: usize) -> Result<()> {
    web.create(objects).await?;
    web.each(objects, async |object| {
        follower.until(object, |state| state["status"]["observedGeneration"] == 1).await;
        Ok(())
    })
    .await
}

fn rows(names: OnAll, took: Duration, objects: usize, used: Used) -> Vec<Measured> {
    let [operator, total] = used.each(objects);
    names.into_iter().zip([took.as_secs_f64(), operator, total]).collect()
}
