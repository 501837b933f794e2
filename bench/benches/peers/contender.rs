//! One of those that are compared: an operator on a control plane of its own, with objects that are all made real.

use std::{process::Command, time::Duration};

use anyhow::{Context, Result};
use pilothouse_bench::{
    process::{Process, cpu},
    quantile,
    table::Measured,
};
use pilothouse_control_plane::{Assets, ControlPlane, Options, Part, Parts};
use pilothouse_tests::{
    app_services::{AppServices, Follower},
    artifacts,
    cluster::{create_namespace, install_crd},
};
use tempfile::TempDir;

/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(300);

/// The rest between one change and the next, as people leave it.
const REST: Duration = Duration::from_millis(20);

const NAMESPACE: &str = "peers";

/// An operator at work.
pub struct Contender {
    /// What it is called in the table.
    pub name: &'static str,
    operator: Process,
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
        let assets = Assets::ensure(pilothouse_control_plane::to_stderr).await?;
        let plane = ControlPlane::start(assets, Options::new(folder.path().join("control-plane"), Parts::Api)).await?;
        let client = plane.client().await?;
        install_crd(&client, &artifacts::repository().join("crds/appservices.apps.example.com.yaml")).await?;
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
        Ok(Self { name, operator, web, children, server, plane, folder })
    }

    /// So many changes, and so many repairs, one at a time.
    pub async fn round(&self, round: usize, times: usize) -> Result<Vec<Measured>> {
        let mut measured = Vec::new();
        let image = |number| format!("example.com/web:{round}-{number}");
        let change = async |number| self.web.change(&self.children, number, &image(number)).await;
        measured.extend(self.measure(CHANGE, times, change).await?);
        let drift = async |number| self.web.drift(&self.children, number).await;
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
        let mut took = Vec::new();
        for number in 0..times {
            let answer = tokio::time::timeout(PATIENCE, work(number)).await;
            let answer = answer.with_context(|| format!("{} does nothing about object {number}", self.name))?;
            took.push(answer?.as_secs_f64() * 1_000.0);
            tokio::time::sleep(REST).await;
        }
        let after = used()?;
        took.sort_by(f64::total_cmp);
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
