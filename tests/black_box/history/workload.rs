//! Runs random histories of many objects on several hosts, while plugins are swapped and hosts are restarted.

use std::{cell::Cell, collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};

use anyhow::{Context, Result, ensure};
use fastrand::Rng;
use futures::{StreamExt, TryStreamExt, stream};
use pilothouse_tests::{
    artifacts,
    cluster::{Awaited, Cluster, Namespace},
    wait::{Look, eventually},
};
use serde_json::{Value, json};

use super::steps::{History, Step};
use crate::{
    state::{State, States},
    test_env::{TestEnv, at_rest},
};

/// The number of histories of one host that run at the same time.
const AT_ONCE: usize = 12;

/// The time limit while hundreds of objects change.
const PATIENCE: Duration = Duration::from_secs(120);

/// The active plugins and the kinds of their objects.
const PLUGINS: [(&str, &str); 2] = [("app-service", "AppService"), ("sextet", "Sextet")];

/// An event for a host.
#[derive(Clone, Copy, Debug)]
pub enum Event {
    /// Version 0.1.0 or 0.2.0 of a plugin is installed.
    Swap(&'static str, Version),
    /// It is killed, and started again.
    Kill,
    /// It is stopped, and started again.
    Restart,
}

/// A version of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// 0.1.0.
    First,
    /// 0.2.0.
    Next,
}

/// A host and its objects, with the steps and events planned for them.
pub struct Workload {
    env: TestEnv,
    /// The histories of the objects.
    pub histories: Vec<History>,
    /// The events of the host, spread evenly over the steps.
    pub events: Vec<Event>,
}

impl Event {
    /// A swap half of the time.
    pub fn random(rng: &mut Rng) -> Self {
        match rng.u8(0..4) {
            0 => Self::Kill,
            1 => Self::Restart,
            _ => {
                let (plugin, _) = PLUGINS[rng.usize(0..PLUGINS.len())];
                Self::Swap(plugin, if rng.bool() { Version::First } else { Version::Next })
            }
        }
    }
}

impl Version {
    fn number(self) -> &'static str {
        match self {
            Self::First => "0.1.0",
            Self::Next => "0.2.0",
        }
    }

    fn file(self, plugin: &str) -> Result<PathBuf> {
        match self {
            Self::First => artifacts::any_plugin(plugin),
            Self::Next => artifacts::guest(&format!("{plugin}-next")),
        }
    }
}

impl Workload {
    /// Starts a host in a namespace of its own.
    pub async fn start(
        cluster: &Arc<Cluster>,
        name: &str,
        histories: Vec<History>,
        events: Vec<Event>,
    ) -> Result<Self> {
        let mut env = TestEnv::new(cluster.clone(), name).await?;
        env.start(&PLUGINS.map(|(plugin, _)| plugin)).await?;
        Ok(Self { env, histories, events })
    }

    /// Runs everything; a failure shows the end of the host's log.
    pub async fn run(&mut self) -> Result<()> {
        let done = self.run_to_the_end().await;
        done.with_context(|| format!("the host's log ends with\n{}", self.env.end_of_log()))
    }

    async fn run_to_the_end(&mut self) -> Result<()> {
        self.run_events().await?;
        self.converge().await?;
        let more = self.reconcile_all().await?;
        ensure!(more.is_empty(), "a new host finds more to write: {more:#?}");
        self.converge().await
    }

    /// Runs all steps and events, and then creates a fresh object with the last spec of every object.
    async fn run_events(&mut self) -> Result<()> {
        let TestEnv { namespace, host, .. } = &mut self.env;
        let namespace = &*namespace;
        let all: usize = self.histories.iter().map(|history| history.steps.len()).sum();
        let taken = Cell::new(0);
        let of_objects = async {
            let histories = stream::iter(&self.histories).map(|history| run_history(namespace, history, &taken));
            histories.buffer_unordered(AT_ONCE).try_collect::<()>().await
        };
        let of_host = async {
            for (number, event) in self.events.iter().enumerate() {
                let due = all * (number + 1) / (self.events.len() + 1);
                eventually(PATIENCE, "more steps", async || Ok(Look::of(taken.get() >= due, taken.get()))).await?;
                match event {
                    Event::Swap(plugin, version) => {
                        host.install(&version.file(plugin)?, &format!("{plugin}.wasm"))?;
                    }
                    Event::Kill => {
                        host.kill().await?;
                        host.resume().await?;
                    }
                    Event::Restart => {
                        host.stop().await?;
                        host.resume().await?;
                    }
                }
            }
            Ok(())
        };
        tokio::try_join!(of_objects, of_host)?;
        let fresh = stream::iter(&self.histories).map(|history| async {
            let object = history.object(&fresh_name(history), history.last());
            namespace.apply(object).await
        });
        fresh.buffer_unordered(AT_ONCE).try_collect::<Vec<_>>().await?;
        self.versions_are_active().await?;
        // To wait first is faster than to compare hundreds of objects again and again while they change.
        at_rest(&self.env.host, PATIENCE).await.map(drop)
    }

    /// Waits until the versions that were installed last are active.
    async fn versions_are_active(&self) -> Result<()> {
        for (plugin, _) in PLUGINS {
            let mut swaps = self.events.iter().rev().filter_map(|event| match event {
                Event::Swap(of, version) if *of == plugin => Some(*version),
                _ => None,
            });
            let version = swaps.next().unwrap_or(Version::First).number();
            eventually(PATIENCE, &format!("version {version} of {plugin}"), async || {
                let labels = [("plugin", plugin), ("version", version)];
                Ok(Look::of(self.env.metrics().await?.sum("pilothouse_plugin_loaded", &labels) == 1.0, labels))
            })
            .await?;
        }
        Ok(())
    }

    /// Waits until every object has the same state as its fresh counterpart.
    async fn converge(&self) -> Result<()> {
        let converged = eventually(PATIENCE, "every object to be like a fresh one", async || {
            let different = self.different().await?;
            let reported: String = different.into_values().collect();
            Ok(if reported.is_empty() { Look::Found(()) } else { Look::NotYet(reported) })
        });
        let Err(error) = converged.await else { return Ok(()) };
        let names: Vec<_> = self.different().await?.into_keys().collect();
        let mut writes = self.writes().await?;
        writes.retain(|write| names.iter().any(|name| write.contains(name)));
        Err(error.context(format!("the host's events: {:?}\nits writes on these objects: {writes:#?}", self.events)))
    }

    /// The objects whose state differs from that of their fresh counterparts, with their histories.
    async fn different(&self) -> Result<BTreeMap<String, String>> {
        let States { of, left_over } = States::of(&self.env.namespace, &PLUGINS.map(|(_, kind)| kind)).await?;
        let left_over = left_over.into_iter().map(|child| (child.clone(), format!("{child} belongs to nobody\n")));
        let different = self.histories.iter().filter_map(|history| {
            let (old, fresh) = (of.get(&history.name), of.get(&fresh_name(history)));
            let reported = || (history.name.clone(), format!("{history}became {old:?}\ninstead of {fresh:?}\n"));
            differs(old, fresh).then(reported)
        });
        Ok(left_over.chain(different).collect())
    }

    /// Restarts the host, waits until it has reconciled every object, and returns what it wrote.
    async fn reconcile_all(&mut self) -> Result<Vec<String>> {
        let before = self.writes().await?;
        self.env.host.stop().await?;
        self.env.host.resume().await?;
        for (plugin, kind) in PLUGINS {
            let objects = self.env.namespace.list(kind).await?.len();
            eventually(PATIENCE, "a reconcile of every object", async || {
                let reconciles = self.env.reconciles(plugin).await?;
                Ok(Look::of(reconciles >= objects as f64, reconciles))
            })
            .await?;
        }
        Ok(self.writes().await?.split_off(before.len()))
    }

    /// Everything that the host wrote for objects.
    async fn writes(&self) -> Result<Vec<String>> {
        let writes = self.env.host_writes().await?.into_iter();
        Ok(writes.filter(|write| !write.contains("pilothouse-kinds") && !write.contains(" events/ ")).collect())
    }
}

/// Whether an object's state differs from that of the fresh one, or is not reported for the present spec yet.
fn differs(old: Option<&State>, fresh: Option<&State>) -> bool {
    let is_current = |state: &State| state.object.as_ref().is_some_and(|object| object["current"] == true);
    old.is_none() || old != fresh || !old.is_some_and(is_current)
}

fn fresh_name(history: &History) -> String {
    format!("fresh-{}", history.name)
}

/// Runs the history of one object.
async fn run_history(namespace: &Namespace, history: &History, taken: &Cell<usize>) -> Result<()> {
    namespace.apply(history.object(&history.name, &history.first)).await?;
    let mut spec = &history.first;
    for step in &history.steps {
        if let Step::Spec(next) = step {
            spec = next;
        }
        take(namespace, history, step, spec).await.with_context(|| format!("{step:?} in {history}"))?;
        taken.set(taken.get() + 1);
    }
    Ok(())
}

async fn take(namespace: &Namespace, history: &History, step: &Step, spec: &Value) -> Result<()> {
    let History { kind, name, .. } = history;
    match step {
        Step::Spec(spec) => drop(namespace.apply(history.object(name, spec)).await?),
        Step::Touch => drop(namespace.patch(kind, name, touch()).await?),
        Step::TouchChild(child) => {
            ignore_not_found(namespace.patch(child.kind, &child.name(name), touch()).await.map(drop))?
        }
        Step::Patch(child, patch) => {
            ignore_not_found(namespace.patch(child.kind, &child.name(name), patch.clone()).await.map(drop))?;
        }
        Step::DeleteChild(child) => ignore_not_found(namespace.delete(child.kind, &child.name(name)).await)?,
        Step::Recreate => {
            namespace.delete(kind, name).await?;
            namespace.until_gone_within(PATIENCE, kind, name).await?;
            namespace.apply(history.object(name, spec)).await?;
        }
        Step::Rest => {
            let is_reported =
                |object: &Value| object["status"]["observedGeneration"] == object["metadata"]["generation"];
            namespace.until_within(PATIENCE, &Awaited { kind, name, what: "to be reported on" }, is_reported).await?;
        }
    }
    Ok(())
}

/// A patch with a new value of an annotation that nobody reads.
fn touch() -> Value {
    json!({"metadata": {"annotations": {"tests.pilothouse.dev/touched": fastrand::u32(..).to_string()}}})
}

/// Ignores a 404: the child may not exist yet, or may not be wanted.
fn ignore_not_found(result: Result<()>) -> Result<()> {
    match result {
        Err(error) if matches!(error.downcast_ref(), Some(kube::Error::Api(status)) if status.code == 404) => Ok(()),
        result => result,
    }
}
