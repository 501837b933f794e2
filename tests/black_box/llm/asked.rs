//! The numbers of Pods that StatefulSets are asked for while a test runs: a jump that is soon over is seen as well.

use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Result;
use futures::StreamExt;
use kube::api::{WatchEvent, WatchParams};
use tokio::task::AbortHandle;

use crate::test_env::TestEnv;

/// The numbers of Pods that a StatefulSet was ever asked for.
pub struct Asked {
    seen: Arc<Mutex<Vec<i64>>>,
    watch: AbortHandle,
}

impl Asked {
    /// Watches from now on.
    pub async fn watch(env: &TestEnv) -> Result<Self> {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut events = env.namespace.api("StatefulSet")?.watch(&WatchParams::default(), "0").await?.boxed();
        let kept = seen.clone();
        let watch = tokio::spawn(async move {
            while let Some(Ok(event)) = events.next().await {
                if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event {
                    let replicas = object.data["spec"]["replicas"].as_i64().unwrap_or(-1);
                    kept.lock().unwrap_or_else(PoisonError::into_inner).push(replicas);
                }
            }
        });
        Ok(Self { seen, watch: watch.abort_handle() })
    }

    /// All of them, in order.
    pub fn all(&self) -> Vec<i64> {
        let mut all = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        all.dedup();
        all
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.watch.abort();
    }
}
