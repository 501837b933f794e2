//! One telling of a story, with a namespace, a proxy and a host of its own, with or without a crash.

use std::{cell::Cell, sync::Arc};

use anyhow::{Context, Result, anyhow, ensure};
use kube::api::{Patch, PatchParams};
use pilothouse_tests::{
    cluster::{Cluster, PATIENCE, condition},
    proxy::{Moment, Proxy, Upstream},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use super::story::{NAME, Step, Story};
use crate::{scene::Scene, state::State};

/// Reconciles in a row that write nothing, before an object is believed to be at rest.
const QUIET: usize = 2;

/// Where a host crashes.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// Which write of the last step, from 1.
    pub write: usize,
    /// Before or after the API server has done it.
    pub moment: Moment,
}

/// How a story ends when nothing happens to the host.
pub struct End {
    /// What is there.
    pub state: State,
    /// What the host wrote during the last step.
    pub writes: Vec<String>,
}

/// A story being told.
struct Run {
    story: &'static Story,
    scene: Scene,
    proxy: Proxy,
    touches: Cell<usize>,
}

/// Tells a story without a crash.
pub async fn undisturbed(cluster: &Arc<Cluster>, upstream: &Upstream, story: &'static Story) -> Result<End> {
    let run = Run::new(cluster, upstream, story, "undisturbed").await?;
    run.told(async |run| run.to_the_end().await).await
}

/// Tells a story with a crash, and waits until everything is as if there had been none.
pub async fn crashed(
    cluster: &Arc<Cluster>,
    upstream: &Upstream,
    story: &'static Story,
    point: Point,
    end: &End,
) -> Result<()> {
    let name = format!("{} {:?}", point.write, point.moment);
    let run = Run::new(cluster, upstream, story, &name).await?;
    let told = run.told(async |run| run.through_a_crash(point, &end.state).await).await;
    told.with_context(|| format!("{}, crash at write {name}; undisturbed: {:#?}", story.name, end.writes))
}

/// Tells a story with a crash at a write, goes back to where it was before the last step, and lets the write come then.
/// Whether the API server took it.
pub async fn overtaken(
    cluster: &Arc<Cluster>,
    upstream: &Upstream,
    story: &'static Story,
    write: usize,
) -> Result<bool> {
    let run = Run::new(cluster, upstream, story, &format!("{write} late")).await?;
    let told = run.told(async |run| run.through_a_late_write(write).await).await;
    told.with_context(|| format!("{}, write {write} comes late", story.name))
}

impl Run {
    async fn new(cluster: &Arc<Cluster>, upstream: &Upstream, story: &'static Story, name: &str) -> Result<Self> {
        let mut scene = Scene::new(cluster.clone(), &format!("{} {name}", story.name)).await?;
        let proxy = scene.behind_proxy(upstream).await?;
        Ok(Self { story, scene, proxy, touches: Cell::default() })
    }

    /// Tells a story, the last step as `last` does; a failure comes with how everything is.
    async fn told<T>(mut self, last: impl AsyncFnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let told = async {
            self.scene.replace(self.story.plugin, self.story.first)?;
            self.scene.start(&[]).await?;
            for step in self.story.before {
                self.take(*step).await?;
                self.rest().await?;
            }
            last(&mut self).await
        }
        .await;
        match told {
            Ok(told) => Ok(told),
            Err(error) => Err(anyhow!("{error:#}\n{}", self.scene.account().await)),
        }
    }

    async fn to_the_end(&self) -> Result<End> {
        self.proxy.writes().count();
        self.take(self.story.step).await?;
        let ends = |state: &State| Look::of((self.story.ends)(state), state);
        eventually(PATIENCE, "the end of the story", async || Ok(ends(&self.look().await?))).await?;
        self.rest().await?;
        Ok(End { writes: self.proxy.writes().seen(), state: self.state().await? })
    }

    async fn through_a_crash(&mut self, point: Point, end: &State) -> Result<()> {
        self.crash(point).await?;
        self.comes_to(end).await
    }

    async fn through_a_late_write(&mut self, write: usize) -> Result<bool> {
        let before = self.state().await?;
        self.crash(Point { write, moment: Moment::Before }).await?;
        for step in self.story.before {
            self.take(*step).await?;
        }
        self.comes_to(&before).await?;
        let answer = self.proxy.writes().release().await?;
        self.comes_to(&before).await?;
        Ok(answer.is_success())
    }

    /// Takes the last step, kills the host at a write, and starts the next one.
    async fn crash(&mut self, point: Point) -> Result<()> {
        let writes = self.proxy.writes();
        writes.hold(point.write, point.moment);
        self.take(self.story.step).await?;
        eventually(PATIENCE, "the write", async || {
            self.play_others().await?;
            Ok(Look::of(writes.is_held(), writes.seen()))
        })
        .await?;
        self.scene.host.kill().await?;
        writes.count();
        self.scene.host.resume().await
    }

    /// Waits until the state is as it shall be, and stays so.
    async fn comes_to(&self, end: &State) -> Result<()> {
        let same = |state: &State| Look::of(state == end, state);
        eventually(PATIENCE, &format!("the state {end:?}"), async || Ok(same(&self.look().await?))).await?;
        self.rest().await?;
        let state = self.state().await?;
        ensure!(state == *end, "it did not stay {end:?}, but became {state:?}");
        Ok(())
    }

    async fn take(&self, step: Step) -> Result<()> {
        match step {
            Step::Apply(object) => drop(self.scene.namespace.apply(object()).await?),
            Step::Swap(build) => self.scene.replace(self.story.plugin, build)?,
            Step::Pod(pod, status) => {
                let (pods, status) = (self.scene.namespace.api("Pod")?, Patch::Merge(json!({"status": status()})));
                drop(pods.patch_status(pod, &PatchParams::default(), &status).await?);
            }
            Step::Delete => self.scene.namespace.delete(self.story.kind, NAME).await?,
        }
        Ok(())
    }

    /// Waits until the object is gone, or is ready and its reconciles write nothing.
    async fn rest(&self) -> Result<()> {
        let rests = |object: Option<Value>| Look::of(object.as_ref().is_none_or(|it| is_ready(it, "True")), object);
        eventually(PATIENCE, "the object to be ready", async || {
            self.play_others().await?;
            Ok(rests(self.object().await?))
        })
        .await?;
        let mut quiet = 0;
        while quiet < QUIET && self.object().await?.is_some() {
            let before = self.proxy.writes().seen().len();
            self.scene.reconciled_after(self.story.plugin, async || self.touch().await).await?;
            quiet = if self.proxy.writes().seen().len() == before { quiet + 1 } else { 0 };
        }
        Ok(())
    }

    async fn touch(&self) -> Result<()> {
        self.touches.set(self.touches.get() + 1);
        self.scene.touch(self.story.kind, NAME, self.touches.get()).await
    }

    async fn object(&self) -> Result<Option<Value>> {
        self.scene.namespace.get(self.story.kind, NAME).await
    }

    async fn state(&self) -> Result<State> {
        State::of(&self.scene.namespace, self.story.kind, NAME).await
    }

    async fn look(&self) -> Result<State> {
        self.play_others().await?;
        self.state().await
    }

    /// Does what controllers and nodes do, which do not run, for nobody knows how often they write. Here they write once, when
    /// the host has said that it waits for them.
    async fn play_others(&self) -> Result<()> {
        match (self.story.kind, self.object().await?) {
            ("AppService", Some(app)) if is_ready(&app, "False") => self.play_deployments().await,
            ("TrainingJob", Some(job)) => self.play_node(&job).await,
            _ => Ok(()),
        }
    }

    /// The node that the first worker is on.
    async fn play_node(&self, job: &Value) -> Result<()> {
        let first = &job["status"]["workerStatuses"][0];
        let Some(name) = first["podName"].as_str() else { return Ok(()) };
        let Some(pod) = self.scene.namespace.get("Pod", name).await? else { return Ok(()) };
        if first["podUid"] == pod["metadata"]["uid"] && pod["status"]["phase"] == "Pending" {
            let status = Patch::Merge(json!({"status": {"phase": "Running"}}));
            self.scene.namespace.api("Pod")?.patch_status(name, &PatchParams::default(), &status).await?;
        }
        Ok(())
    }

    async fn play_deployments(&self) -> Result<()> {
        let namespace = &self.scene.namespace;
        let Some(deployment) = namespace.get("Deployment", NAME).await? else { return Ok(()) };
        let (generation, replicas) = (&deployment["metadata"]["generation"], &deployment["spec"]["replicas"]);
        let status = json!({"status": {
            "observedGeneration": generation, "replicas": replicas, "updatedReplicas": replicas,
            "readyReplicas": replicas, "availableReplicas": replicas,
        }});
        let deployments = namespace.api("Deployment")?;
        deployments.patch_status(NAME, &PatchParams::default(), &Patch::Merge(status)).await?;
        Ok(())
    }
}

/// Whether the host says of an object as it is now that it is ready (`True`) or not (`False`).
fn is_ready(object: &Value, status: &str) -> bool {
    let current = object["status"]["observedGeneration"] == object["metadata"]["generation"];
    current && condition(object, "Ready")["status"] == status
}
