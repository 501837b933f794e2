//! The watches of the real server: for each kind all objects, and those with a label. The events are kept by namespace.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use anyhow::Result;
use futures::{AsyncBufRead, AsyncBufReadExt, StreamExt};
use http::Request;
use kube::Client;
use pilothouse_tests::wait::{Look, eventually};
use serde_json::Value;
use tokio::task::JoinSet;

use super::kinds::Kind;

/// The selectors of the watches.
pub const SELECTORS: [&str; 2] = ["", "&labelSelector=app%3Da"];

/// How long a watch may take to begin, and events to come.
const PATIENCE: Duration = Duration::from_secs(60);

/// The events of a namespace, by the plural of the kind, its version and the selector.
type Events = HashMap<(String, String, usize), Vec<Value>>;

/// All watches. They end with this value.
pub struct Watches {
    events: Arc<Mutex<HashMap<String, Events>>>,
    _tasks: JoinSet<()>,
}

impl Watches {
    /// Begins to watch.
    ///
    /// # Errors
    /// If the server refuses.
    pub async fn start(client: &Client, kinds: &[Kind]) -> Result<Self> {
        let events = Arc::new(Mutex::new(HashMap::new()));
        let mut tasks = JoinSet::new();
        for kind in kinds {
            for (index, selector) in SELECTORS.iter().enumerate() {
                let path = kind.path("any").replace("/namespaces/any", "");
                let uri = format!("{path}?watch=true{selector}");
                let stream = begin(client, &uri).await?;
                let (events, key) = (events.clone(), (kind.plural.clone(), kind.api_version.clone(), index));
                tasks.spawn(async move {
                    let mut lines = stream.lines();
                    while let Some(Ok(line)) = lines.next().await {
                        keep(&events, &key, &line);
                    }
                });
            }
        }
        Ok(Self { events, _tasks: tasks })
    }

    /// The events of a namespace, once there are as many as expected, or no more come.
    pub async fn events(&self, namespace: &str, key: &(String, String, usize), expected: usize) -> Vec<Value> {
        let wait = async {
            loop {
                let found = self.take(namespace, key);
                if found.len() >= expected {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        let found = tokio::time::timeout(PATIENCE, wait).await;
        found.unwrap_or_else(|_| self.take(namespace, key))
    }

    fn take(&self, namespace: &str, key: &(String, String, usize)) -> Vec<Value> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.get(namespace).and_then(|events| events.get(key)).cloned().unwrap_or_default()
    }
}

/// Begins a watch. The handlers of a kind whose CRD has just been established may answer 404 or 429 for a moment.
async fn begin(client: &Client, uri: &str) -> Result<Pin<Box<dyn AsyncBufRead + Send>>> {
    eventually(PATIENCE, &format!("a watch of {uri}"), async || {
        let stream = client.request_stream(Request::get(uri).body(Vec::new())?).await?;
        Ok(Look::Found(Box::pin(stream) as Pin<Box<dyn AsyncBufRead + Send>>))
    })
    .await
}

fn keep(events: &Mutex<HashMap<String, Events>>, key: &(String, String, usize), line: &str) {
    let Ok(event) = serde_json::from_str::<Value>(line) else { return };
    if is_of_an_allocator(&event["object"]) {
        return;
    }
    let namespace = event["object"]["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
    let mut events = events.lock().unwrap_or_else(PoisonError::into_inner);
    events.entry(namespace).or_default().entry(key.clone()).or_default().push(event);
}

/// Whether an object is an Event of the real server's own about the address of a Service. It looks at all of them every three minutes, and
/// takes one that is created or deleted at that moment for a mistake.
fn is_of_an_allocator(object: &Value) -> bool {
    object["kind"] == "Event" && object["reportingComponent"].as_str().is_some_and(|it| it.starts_with("ipallocator-"))
}
