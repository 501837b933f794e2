//! Creates and changes many AppServices, all at once or one by one, and measures the time until a change reaches a
//! child. For benchmarks and for profile-guided builds.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use kube::{
    Api, Client,
    api::{DynamicObject, Patch, PatchParams},
    runtime::{
        WatchStreamExt,
        watcher::{self, Event, watcher},
    },
};
use pilothouse_control_plane::{Assets, ControlPlane, Options, Parts};
use serde_json::{Value, json};
use tokio::{sync::Notify, task::AbortHandle};

use crate::{
    artifacts,
    cluster::{api, install_crd, revision},
};

/// The number of concurrent requests.
const PARALLEL: usize = 16;

/// Starts an API server with the AppService CRD and without controllers, which would distort measurements.
///
/// # Errors
/// If a part does not start.
pub async fn api_server(folder: PathBuf) -> Result<ControlPlane> {
    let assets = Assets::ensure(pilothouse_control_plane::to_stderr).await?;
    let plane = ControlPlane::start(assets, Options::new(folder, Parts::Api)).await?;
    let crd = artifacts::repository().join("crds/appservices.apps.example.com.yaml");
    install_crd(&plane.client().await?, &crd).await?;
    Ok(plane)
}

/// The AppServices of one namespace, each with its Deployment.
pub struct AppServices {
    objects: Api<DynamicObject>,
    children: Api<DynamicObject>,
}

impl AppServices {
    /// The AppServices of a namespace.
    ///
    /// # Errors
    /// None in practice, because both kinds are known.
    pub fn new(client: &Client, namespace: &str) -> Result<Self> {
        Ok(Self {
            objects: api(client, "AppService", Some(namespace))?,
            children: api(client, "Deployment", Some(namespace))?,
        })
    }

    /// Creates `count` objects.
    ///
    /// # Errors
    /// If the API server refuses a request.
    pub async fn create(&self, count: usize) -> Result<()> {
        self.each(count, async |name| self.create_one(name).await).await
    }

    /// Creates one object.
    ///
    /// # Errors
    /// If the API server refuses a request.
    pub async fn create_one(&self, name: &str) -> Result<()> {
        let object = json!({
            "apiVersion": "apps.example.com/v1", "kind": "AppService", "metadata": {"name": name},
            "spec": {"replicas": 2, "image": "example.com/web:1"},
        });
        self.objects.create(&Default::default(), &serde_json::from_value(object)?).await?;
        Ok(())
    }

    /// Deletes one object.
    ///
    /// # Errors
    /// If the API server refuses a request.
    pub async fn delete_one(&self, name: &str) -> Result<()> {
        self.objects.delete(name, &Default::default()).await?;
        Ok(())
    }

    /// Changes all objects with a merge patch.
    ///
    /// # Errors
    /// If the API server refuses a request.
    pub async fn change_objects(&self, count: usize, patch: &Value) -> Result<()> {
        self.each(count, async |name| merge(&self.objects, name, patch).await.map(drop)).await
    }

    /// Changes all Deployments with a merge patch.
    ///
    /// # Errors
    /// If the API server refuses a request.
    pub async fn change_children(&self, count: usize, patch: &Value) -> Result<()> {
        self.each(count, async |name| merge(&self.children, name, patch).await.map(drop)).await
    }

    /// Changes one object and returns the time from the answer to the event of its Deployment.
    ///
    /// # Errors
    /// If the API server refuses a request.
    pub async fn change(&self, follower: &Follower, number: usize, image: &str) -> Result<Duration> {
        let patch = json!({"spec": {"image": image}});
        merge(&self.objects, &name(number), &patch).await?;
        let answered = Instant::now();
        let image = image.to_owned();
        let at = follower.until(&name(number), move |child| image_of(child) == Some(&image)).await;
        Ok(at.saturating_duration_since(answered))
    }

    /// Edits one Deployment and returns the time from the answer to the event of its repair.
    ///
    /// # Errors
    /// If the API server refuses a request.
    pub async fn drift(&self, follower: &Follower, number: usize) -> Result<Duration> {
        let edited = merge(&self.children, &name(number), &json!({"spec": {"replicas": 7}})).await?;
        let answered = Instant::now();
        let version = revision(&serde_json::to_value(edited)?)?;
        let repaired =
            move |child: &Value| revision(child).is_ok_and(|at| at > version) && child["spec"]["replicas"] == 2;
        Ok(follower.until(&name(number), repaired).await.saturating_duration_since(answered))
    }

    /// Follows the Deployments.
    ///
    /// # Errors
    /// If the API server refuses a request.
    pub async fn follow_children(&self) -> Result<Follower> {
        Follower::of(&self.children).await
    }

    /// Follows the objects.
    ///
    /// # Errors
    /// If the API server refuses a request.
    pub async fn follow_objects(&self) -> Result<Follower> {
        Follower::of(&self.objects).await
    }

    /// Runs `work` for each of `count` names, several at a time.
    ///
    /// # Errors
    /// The first error.
    pub async fn each(&self, count: usize, work: impl AsyncFn(&str) -> Result<()>) -> Result<()> {
        self.each_number(count, async |number| work(&name(number)).await).await
    }

    /// The same with their numbers.
    ///
    /// # Errors
    /// The first error.
    pub async fn each_number(&self, count: usize, work: impl AsyncFn(usize) -> Result<()>) -> Result<()> {
        stream::iter(0..count).map(|number| work(number)).buffer_unordered(PARALLEL).try_collect().await
    }
}

/// The latest states of objects by name, with their arrival times.
#[derive(Default)]
struct Latest {
    states: Mutex<HashMap<String, (Instant, Value)>>,
    changed: Notify,
}

impl Latest {
    fn heard(&self, event: Event<DynamicObject>) {
        if let Event::Apply(object) | Event::InitApply(object) = event {
            self.saw(object);
        }
    }

    fn saw(&self, object: DynamicObject) {
        let (name, now) = (object.metadata.name.clone().unwrap_or_default(), Instant::now());
        // Serialization cannot fail, because the object came from JSON.
        let state = serde_json::to_value(object).unwrap_or_default();
        self.states.lock().unwrap_or_else(PoisonError::into_inner).insert(name, (now, state));
        self.changed.notify_waiters();
    }

    /// The arrival time of the latest state of an object, if it satisfies a condition.
    fn seen(&self, name: &str, holds: impl Fn(&Value) -> bool) -> Option<Instant> {
        let states = self.states.lock().unwrap_or_else(PoisonError::into_inner);
        states.get(name).filter(|(_, state)| holds(state)).map(|(at, _)| *at)
    }
}

/// Follows the events of one kind.
pub struct Follower {
    latest: Arc<Latest>,
    task: AbortHandle,
}

impl Follower {
    /// Lists and watches a kind, and restarts the watch when it ends.
    ///
    /// # Errors
    /// If the API server refuses a request.
    pub async fn of(api: &Api<DynamicObject>) -> Result<Self> {
        let mut events = Box::pin(watcher(api.clone(), watcher::Config::default()).default_backoff());
        let latest = Arc::new(Latest::default());
        loop {
            match events.try_next().await?.context("the watch ended")? {
                Event::InitDone => break,
                event => latest.heard(event),
            }
        }
        let seen = latest.clone();
        let task = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                match event {
                    Ok(event) => seen.heard(event),
                    Err(error) => eprintln!("a watch failed, and begins anew: {error}"),
                }
            }
        });
        Ok(Self { latest, task: task.abort_handle() })
    }

    /// The time of the event by which an object satisfies a condition.
    pub async fn until(&self, name: &str, holds: impl Fn(&Value) -> bool) -> Instant {
        loop {
            let changed = self.latest.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            if let Some(at) = self.latest.seen(name, &holds) {
                return at;
            }
            changed.await;
        }
    }
}

impl Drop for Follower {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn merge(api: &Api<DynamicObject>, name: &str, patch: &Value) -> Result<DynamicObject> {
    Ok(api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?)
}

fn name(number: usize) -> String {
    format!("web-{number}")
}

fn image_of(child: &Value) -> Option<&str> {
    child.pointer("/spec/template/spec/containers/0/image")?.as_str()
}
