//! Follows one object with a watch that is opened before the object is changed, so that every state is seen in order and the times
//! are exact. Read-only.

use std::time::Duration;

use anyhow::{Context, Result, bail};
use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use kube::{
    Api,
    api::{DynamicObject, ListParams, WatchEvent, WatchParams},
};
use serde_json::Value;
use tokio::time::{Instant, timeout_at};

/// The time limit for the cluster.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// An object and its changes.
pub struct Follow {
    /// Kind and name, for messages.
    name: String,
    events: BoxStream<'static, kube::Result<WatchEvent<DynamicObject>>>,
    now: Option<Value>,
}

impl Follow {
    /// Begins to follow an object, which need not exist yet.
    pub async fn open(api: &Api<DynamicObject>, kind: &str, name: &str) -> Result<Self> {
        let selector = format!("metadata.name={name}");
        let listed = api.list(&ListParams::default().fields(&selector)).await?;
        let version = listed.metadata.resource_version.context("a list without a version")?;
        let events = api.watch(&WatchParams::default().fields(&selector), &version).await?.boxed();
        let now = listed.items.into_iter().next().map(serde_json::to_value).transpose()?;
        Ok(Self { name: format!("{kind} '{name}'"), events, now })
    }

    /// Waits until the object is there and as wanted. `what` completes the sentence "waited 30 s for Deployment 'shop' …".
    ///
    /// # Errors
    /// If that does not happen in time. Quotes the object.
    pub async fn until(&mut self, what: &str, holds: impl Fn(&Value) -> bool) -> Result<Value> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Some(now) = self.now.as_ref().filter(|now| holds(now)) {
                return Ok(now.clone());
            }
            self.next(deadline, what).await?;
        }
    }

    /// Waits until the object does not exist any more.
    ///
    /// # Errors
    /// If that does not happen in time. Quotes the object.
    pub async fn until_gone(&mut self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while self.now.is_some() {
            self.next(deadline, "to be gone").await?;
        }
        Ok(())
    }

    async fn next(&mut self, deadline: Instant, what: &str) -> Result<()> {
        let Ok(event) = timeout_at(deadline, self.events.try_next()).await else {
            bail!("waited {PATIENCE:?} for {} {what}; in the end: {}", self.name, self.quoted());
        };
        match event?.with_context(|| format!("the watch of {} ended", self.name))? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => self.now = Some(serde_json::to_value(object)?),
            WatchEvent::Deleted(_) => self.now = None,
            WatchEvent::Bookmark(_) => {}
            WatchEvent::Error(status) => bail!("the watch of {} failed: {}", self.name, status.message),
        }
        Ok(())
    }

    /// The object for an error message: without who wrote which field, which nobody reads there.
    fn quoted(&self) -> String {
        let Some(mut object) = self.now.clone() else { return "it does not exist".to_owned() };
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.remove("managedFields");
        }
        object.to_string()
    }
}
