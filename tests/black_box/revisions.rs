//! Collects all revisions of an object with a watch, so that short-lived states are seen as well.

use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream::BoxStream};
use kube::api::{DynamicObject, WatchEvent, WatchParams};
use pilothouse_tests::cluster::{PATIENCE, revision};
use serde_json::Value;

use crate::test_env::TestEnv;

/// The revisions of one object.
pub struct Revisions {
    events: BoxStream<'static, kube::Result<WatchEvent<DynamicObject>>>,
    seen: Vec<Value>,
}

impl Revisions {
    /// The revisions of an existing object, from the present one on.
    pub async fn of(env: &TestEnv, kind: &str, name: &str) -> Result<Self> {
        let api = env.namespace.api(kind)?;
        let now = api.get(name).await?;
        let from = now.metadata.resource_version.clone().context("no resource version")?;
        let parameters = WatchParams::default().fields(&format!("metadata.name={name}"));
        let events = api.watch(&parameters, &from).await?.boxed();
        Ok(Self { events, seen: vec![serde_json::to_value(now)?] })
    }

    /// All revisions so far, including the first one.
    pub fn seen(&self) -> &[Value] {
        &self.seen
    }

    /// The latest revision so far.
    pub fn latest(&self) -> Option<&Value> {
        self.seen.last()
    }

    /// Waits for the next event.
    pub async fn next(&mut self) -> Result<()> {
        let event = self.events.try_next().await?.context("the watch ended")?;
        if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event {
            self.seen.push(serde_json::to_value(object)?);
        }
        Ok(())
    }

    /// Follows the watch until it has delivered this revision.
    pub async fn until(&mut self, last: &Value) -> Result<()> {
        let wanted = revision(last)?;
        let follow = async {
            while self.latest().map(revision).transpose()? < Some(wanted) {
                self.next().await?;
            }
            Ok(())
        };
        tokio::time::timeout(PATIENCE, follow).await.context("the watch is behind")?
    }
}
