//! One of those that are compared: an operator on a control plane of its own, with objects that are all made real.

use std::{process::Command, time::Duration};

use anyhow::{Context, Result};
use pilothouse_bench::{
    process::{Process, cpu},
    table::Measured,
    times::{one_by_one, quantile},
};
use pilothouse_control_plane::{ControlPlane, Part};
use pilothouse_tests::{
    app_services::{AppServices, Follower, api_server},
    cluster::create_namespace,
};
use tempfile::TempDir;

/// How long all objects may take to become real.
const PATIENCE: Duration = Duration::from_secs(300);

const NAMESPACE: &str = "peers";

/// An operator at work.
pub struct Contender {
    /// What it is called in the table.
    pub name: &'static str,
    operator: Process,
    objects: usize,
    web: AppServices,
    children: Follower,
    server: u32,
    plane: ControlPlane,
    folder: TempDir,
}

/// The rows of one kind of work: quantiles, and the processor time of operator and API server.
type Rows = [&'static str; 5];

const CHANGE: Rows = [
    "one change: p50, ms",
    "one change: p90, ms",
    "one change: p99, ms",
    "one change: operator CPU, ms",
    "one change: API server CPU, ms",
];

const DRIFT: Rows =
    ["drift: p50, ms", "drift: p90, ms", "drift: p99, ms", "drift: operator CPU, ms", "drift: API server CPU, ms"];

impl Contender {
    /// Starts a control plane and the operator, and waits until all objects are reported on.
    pub async fn start(name: &'static str, mut command: Command, objects: usize) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let plane = api_server(folder.path().join("control-plane")).await?;
        let client = plane.client().await?;
        create_namespace(&client, NAMESPACE).await?;
        let web = AppServices::new(&client, NAMESPACE)?;
        let follower = web.follow_objects().await?;
        web.create(objects).await?;
        let operator = Process::start(command.env("KUBECONFIG", plane.kubeconfig_path()))?;
        let reported = web.each(objects, async |object| {
            follower.until(object, |state| state["status"]["observedGeneration"] == 1).await;
            Ok(())
        });
        tokio::time::timeout(PATIENCE, reported).await.with_context(|| format!("{name} does not get done"))??;
        let (children, server) = (web.follow_children().await?, plane.pid(Part::ApiServer).await?);
        Ok(Self { name, operator, objects, web, children, server, plane, folder })
    }

    /// So many changes, and so many repairs, one at a time.
    pub async fn round(&self, round: usize, times: usize) -> Result<Vec<Measured>> {
        let mut measured = Vec::new();
        let image = |number| format!("example.com/web:{round}-{number}");
        let object = |number| number % self.objects;
        let change = async |number| self.web.change(&self.children, object(number), &image(number)).await;
        measured.extend(self.measure(CHANGE, times, change).await?);
        let drift = async |number| self.web.drift(&self.children, object(number)).await;
        measured.extend(self.measure(DRIFT, times, drift).await?);
        Ok(measured)
    }

    async fn measure(
        &self,
        rows: Rows,
        times: usize,
        work: impl AsyncFn(usize) -> Result<Duration>,
    ) -> Result<Vec<Measured>> {
        let used = || anyhow::Ok([self.operator.cpu()?, cpu(self.server)?]);
        let before = used()?;
        let took = one_by_one(times, work).await.with_context(|| format!("with {}", self.name))?;
        let after = used()?;
        let each = |which: usize| (after[which] - before[which]) * 1_000.0 / times as f64;
        let values = [quantile(&took, 0.5), quantile(&took, 0.9), quantile(&took, 0.99), each(0), each(1)];
        Ok(rows.into_iter().zip(values).collect())
    }

    /// Ends the operator and its control plane.
    pub async fn stop(self) -> Result<()> {
        let Self { operator, children, plane, folder, .. } = self;
        drop(children);
        operator.stop()?;
        plane.stop().await?;
        Ok(folder.close()?)
    }
}
