//! What is seen of objects while a test runs, in each of their versions: what is soon over is seen as well.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use anyhow::Result;
use futures::StreamExt;
use kube::api::{WatchEvent, WatchParams};
use serde_json::Value;
use tokio::task::AbortHandle;

use crate::test_env::TestEnv;

/// What was seen, in order.
pub struct Seen<T> {
    all: Arc<Mutex<Vec<T>>>,
    watch: AbortHandle,
}

impl<T: Clone + PartialEq + Send + 'static> Seen<T> {
    /// Watches the objects of a kind from now on, and keeps what `look` makes of each version.
    pub async fn watch(env: &TestEnv, kind: &str, look: impl Fn(&Value) -> T + Send + 'static) -> Result<Self> {
        let all = Arc::new(Mutex::new(Vec::new()));
        let mut events = env.namespace.api(kind)?.watch(&WatchParams::default(), "0").await?.boxed();
        let kept = all.clone();
        let watch = tokio::spawn(async move {
            while let Some(Ok(event)) = events.next().await {
                if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event
                    && let Ok(object) = serde_json::to_value(object)
                {
                    lock(&kept).push(look(&object));
                }
            }
        });
        Ok(Self { all, watch: watch.abort_handle() })
    }

    /// All of it, each once until it changes.
    pub fn all(&self) -> Vec<T> {
        let mut all = lock(&self.all).clone();
        all.dedup();
        all
    }

    /// Begins anew with what was seen last.
    pub fn forget(&self) {
        let mut all = lock(&self.all);
        *all = all.last().cloned().into_iter().collect();
    }
}

fn lock<T>(all: &Mutex<Vec<T>>) -> MutexGuard<'_, Vec<T>> {
    all.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Seen<i64> {
    /// The numbers of Pods that StatefulSets are asked for.
    pub async fn asked(env: &TestEnv) -> Result<Self> {
        Self::watch(env, "StatefulSet", |set| set["spec"]["replicas"].as_i64().unwrap_or(-1)).await
    }
}

impl<T> Drop for Seen<T> {
    fn drop(&mut self) {
        self.watch.abort();
    }
}
