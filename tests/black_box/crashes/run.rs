//! One run of a scenario, with or without a crash. Has a namespace, a proxy and a host of its own.

use std::{cell::Cell, sync::Arc};

use anyhow::{Context, Result, anyhow, ensure};
use kube::api::{Patch, PatchParams};
use pilothouse_tests::{
    cluster::{Cluster, PATIENCE, condition},
    proxy::{Moment, Proxy, Upstream},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use super::scenario::{NAME, Scenario, Step};
use crate::{state::State, test_env::TestEnv};

/// The number of reconciles in a row without a write after which an object counts as at rest.
const QUIET: usize = 2;

/// Where a host crashes.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// The number of the write in the last step, from 1.
    pub write: usize,
    /// Before or after the API server has carried it out.
    pub moment: Moment,
}

/// The end of a scenario without a crash.
pub struct End {
    /// The state of the namespace.
    pub state: State,
    /// What the host wrote during the last step.
    pub writes: Vec<String>,
}

/// A running scenario.
struct Run {
    scenario: &'static Scenario,
    env: TestEnv,
    proxy: Proxy,
    touches: Cell<usize>,
}

/// Runs a scenario without a crash.
pub async fn without_crash(cluster: &Arc<Cluster>, upstream: &Upstream, scenario: &'static Scenario) -> Result<End> {
    let run = Run::new(cluster, upstream, scenario, "undisturbed").await?;
    run.execute(async |run| run.run_to_end().await).await
}

/// Runs a scenario with a crash, and waits until the state is the same as without one.
pub async fn crashed(
    cluster: &Arc<Cluster>,
    upstream: &Upstream,
    scenario: &'static Scenario,
    point: Point,
    end: &End,
) -> Result<()> {
    let name = format!("{} {:?}", point.write, point.moment);
    let run = Run::new(cluster, upstream, scenario, &name).await?;
    let result = run.execute(async |run| run.crash_at(point, &end.state).await).await;
    result.with_context(|| format!("{}, crash at write {name}; undisturbed: {:#?}", scenario.name, end.writes))
}

/// Runs a scenario with a crash at a write, returns to the state before the last step, and only then lets the write arrive. Returns
/// whether the API server accepted it.
pub async fn crashed_with_late_write(
    cluster: &Arc<Cluster>,
    upstream: &Upstream,
    scenario: &'static Scenario,
    write: usize,
) -> Result<bool> {
    let run = Run::new(cluster, upstream, scenario, &format!("{write} late")).await?;
    let result = run.execute(async |run| run.crash_with_late_write(write).await).await;
    result.with_context(|| format!("{}, write {write} comes late", scenario.name))
}

impl Run {
    async fn new(cluster: &Arc<Cluster>, upstream: &Upstream, scenario: &'static Scenario, name: &str) -> Result<Self> {
        let mut env = TestEnv::new(cluster.clone(), &format!("{} {name}", scenario.name)).await?;
        let proxy = env.behind_proxy(upstream).await?;
        Ok(Self { scenario, env, proxy, touches: Cell::default() })
    }

    /// Runs a scenario with `last` as its last step. The error of a failure describes the whole state.
    async fn execute<T>(mut self, last: impl AsyncFnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let result = async {
            self.env.replace(self.scenario.plugin, self.scenario.first)?;
            self.env.start(&[]).await?;
            for step in self.scenario.before {
                self.take(*step).await?;
                self.rest().await?;
            }
            last(&mut self).await
        }
        .await;
        match result {
            Ok(result) => Ok(result),
            Err(error) => Err(anyhow!("{error:#}\n{}", self.env.describe_state().await)),
        }
    }

    async fn run_to_end(&self) -> Result<End> {
        self.proxy.writes().count();
        self.take(self.scenario.step).await?;
        let ends = |state: &State| Look::of((self.scenario.ends)(state), state);
        eventually(PATIENCE, "the end of the scenario", async || Ok(ends(&self.look().await?))).await?;
        self.rest().await?;
        Ok(End { writes: self.proxy.writes().seen(), state: self.state().await? })
    }

    async fn crash_at(&mut self, point: Point, end: &State) -> Result<()> {
        self.crash(point).await?;
        self.settles_at(end).await
    }

    async fn crash_with_late_write(&mut self, write: usize) -> Result<bool> {
        let before = self.state().await?;
        self.crash(Point { write, moment: Moment::Before }).await?;
        for step in self.scenario.before {
            self.take(*step).await?;
        }
        self.settles_at(&before).await?;
        let answer = self.proxy.writes().release().await?;
        self.settles_at(&before).await?;
        Ok(answer.is_success())
    }

    /// Takes the last step, kills the host at a write, and starts the next one.
    async fn crash(&mut self, point: Point) -> Result<()> {
        let writes = self.proxy.writes();
        writes.hold(point.write, point.moment);
        self.take(self.scenario.step).await?;
        eventually(PATIENCE, "the write", async || {
            self.act_for_controllers().await?;
            Ok(Look::of(writes.is_held(), writes.seen()))
        })
        .await?;
        self.env.host.kill().await?;
        writes.count();
        self.env.host.resume().await
    }

    /// Waits until the state is as desired, and stays so.
    async fn settles_at(&self, end: &State) -> Result<()> {
        let same = |state: &State| Look::of(state == end, state);
        eventually(PATIENCE, &format!("the state {end:?}"), async || Ok(same(&self.look().await?))).await?;
        self.rest().await?;
        let state = self.state().await?;
        ensure!(state == *end, "it did not stay {end:?}, but became {state:?}");
        Ok(())
    }

    async fn take(&self, step: Step) -> Result<()> {
        match step {
            Step::Apply(object) => drop(self.env.namespace.apply(object()).await?),
            Step::Swap(build) => self.env.replace(self.scenario.plugin, build)?,
            Step::Pod(pod, status) => {
                let (pods, status) = (self.env.namespace.api("Pod")?, Patch::Merge(json!({"status": status()})));
                drop(pods.patch_status(pod, &PatchParams::default(), &status).await?);
            }
            Step::Delete => self.env.namespace.delete(self.scenario.kind, NAME).await?,
        }
        Ok(())
    }

    /// Waits until the object is gone, or is ready and its reconciles write nothing.
    async fn rest(&self) -> Result<()> {
        let rests = |object: Option<Value>| Look::of(object.as_ref().is_none_or(|it| is_ready(it, "True")), object);
        eventually(PATIENCE, "the object to be ready", async || {
            self.act_for_controllers().await?;
            Ok(rests(self.object().await?))
        })
        .await?;
        let mut quiet = 0;
        while quiet < QUIET && self.object().await?.is_some() {
            let before = self.proxy.writes().seen().len();
            self.env.reconciled_after(self.scenario.plugin, async || self.touch().await).await?;
            quiet = if self.proxy.writes().seen().len() == before { quiet + 1 } else { 0 };
        }
        Ok(())
    }

    async fn touch(&self) -> Result<()> {
        self.touches.set(self.touches.get() + 1);
        self.env.touch(self.scenario.kind, NAME, self.touches.get()).await
    }

    async fn object(&self) -> Result<Option<Value>> {
        self.env.namespace.get(self.scenario.kind, NAME).await
    }

    async fn state(&self) -> Result<State> {
        State::of(&self.env.namespace, self.scenario.kind, NAME).await
    }

    async fn look(&self) -> Result<State> {
        self.act_for_controllers().await?;
        self.state().await
    }

    /// Does the work of controllers and nodes. They do not run here, because the number of their writes is not predictable. This
    /// writes once, when the host reports that it waits.
    async fn act_for_controllers(&self) -> Result<()> {
        match (self.scenario.kind, self.object().await?) {
            ("AppService" | "LLMDeployment", Some(object)) if is_ready(&object, "False") => {
                self.act_for_workload("Deployment", NAME).await
            }
            ("LLMModel", Some(object)) if is_ready(&object, "False") => {
                self.act_for_workload("Deployment", &format!("llmmodel-{NAME}")).await
            }
            ("ModelDeployment", Some(object)) if is_ready(&object, "False") => {
                self.act_for_workload("StatefulSet", NAME).await
            }
            ("TrainingJob", Some(job)) => self.act_for_nodes(&job).await,
            _ => Ok(()),
        }
    }

    /// Does the work of the nodes: worker after worker, each once the host reports that the one before runs.
    async fn act_for_nodes(&self, job: &Value) -> Result<()> {
        let workers = job["status"]["workerStatuses"].as_array();
        let Some(next) = workers.into_iter().flatten().find(|worker| worker["status"] != "Running") else {
            return Ok(());
        };
        let Some(name) = next["podName"].as_str() else { return Ok(()) };
        let Some(pod) = self.env.namespace.get("Pod", name).await? else { return Ok(()) };
        if next["podUid"] == pod["metadata"]["uid"] && pod["status"]["phase"] == "Pending" {
            let status = Patch::Merge(json!({"status": {"phase": "Running"}}));
            self.env.namespace.api("Pod")?.patch_status(name, &PatchParams::default(), &status).await?;
        }
        Ok(())
    }

    async fn act_for_workload(&self, kind: &str, name: &str) -> Result<()> {
        let namespace = &self.env.namespace;
        let Some(workload) = namespace.get(kind, name).await? else { return Ok(()) };
        let (generation, replicas) = (&workload["metadata"]["generation"], &workload["spec"]["replicas"]);
        let status = json!({"status": {
            "observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas,
            "readyReplicas": replicas, "availableReplicas": replicas,
        }});
        let workloads = namespace.api(kind)?;
        workloads.patch_status(name, &PatchParams::default(), &Patch::Merge(status)).await?;
        Ok(())
    }
}

/// Whether the host reports an object in its present generation as ready (`True`) or not ready (`False`).
fn is_ready(object: &Value, status: &str) -> bool {
    let current = object["status"]["observedGeneration"] == object["metadata"]["generation"];
    current && condition(object, "Ready")["status"] == status
}
