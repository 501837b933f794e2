//! Kubernetes Events on objects: core/v1, with first and last timestamps and a count, so that `kubectl describe` and
//! `kubectl get events --sort-by=.lastTimestamp` show them. One repetition is one more in the count. Written in the
//! background; a reconcile never waits for an Event, and a lost Event loses nothing but itself. What waits is written before
//! the host ends.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
    time::Duration,
};

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Event as ApiEvent, EventSource, ObjectReference},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time},
};
use kube::{
    Api, Client,
    api::{Patch, PatchParams, PostParams},
};
use pilothouse_engine::contract::{EventType, KindRef};
use serde_json::json;
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

use crate::{clock::Clock, errors::chain, labels, object::Object};

/// Events waiting to be written; more are dropped with a line in the log.
const WAITING: usize = 4096;

/// How often the count of a repeated event is written at most.
const REPEAT: Duration = Duration::from_secs(5);

/// Events whose counts are remembered; an Event itself lives an hour in the API server.
const REMEMBERED: usize = 4096;

/// The API server's limits (core/v1 Event validation). An Event's name is an object's name, a dot and sixteen digits, and no
/// longer than the object's own may be.
const LONGEST_NAME: usize = 253 - 17;
const LONGEST_REASON: usize = 128;
const LONGEST_MESSAGE: usize = 1024;

/// Something to tell about an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// Whether it is worth a warning.
    pub warning: bool,
    /// One CamelCase word.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

impl Event {
    /// A warning.
    pub fn warning(reason: &str, message: &str) -> Self {
        Self { warning: true, reason: reason.to_owned(), message: message.to_owned() }
    }
}

impl From<pilothouse_engine::contract::Event> for Event {
    fn from(event: pilothouse_engine::contract::Event) -> Self {
        Self { warning: event.event_type == EventType::Warning, reason: event.reason, message: event.message }
    }
}

/// Takes Events and returns at once.
#[derive(Clone, Debug)]
pub struct Recorder {
    writer: mpsc::Sender<Command>,
    clock: Clock,
}

/// What the writer is to do.
#[derive(Debug)]
enum Command {
    /// Write an Event, or count it.
    Write(Box<ApiEvent>),
    /// Write everything that waits, then drop this.
    Flush(oneshot::Sender<()>),
}

impl Recorder {
    /// Starts the writer; it ends when the last recorder is dropped. Needs a tokio runtime.
    pub fn start(client: Client, clock: Clock) -> Self {
        let (sender, receiver) = mpsc::channel(WAITING);
        tokio::spawn(Writer { client, written: HashMap::new() }.run(receiver));
        Self { writer: sender, clock }
    }

    /// Records an Event on an object.
    pub fn record(&self, kind: &KindRef, object: &Object, event: &Event) {
        if let Err(error) =
            self.writer.try_send(Command::Write(api_event(kind, object, event, self.clock.now()).into()))
        {
            tracing::warn!(object = %object.name, reason = event.reason, "an event is dropped: {error}");
        }
    }

    /// Waits until everything recorded so far is written, counts included.
    pub async fn flush(&self) {
        let (written, done) = oneshot::channel();
        if self.writer.send(Command::Flush(written)).await.is_ok() {
            // It ends when the writer drops its part, or is gone itself.
            drop(done.await);
        }
    }
}

fn api_event(kind: &KindRef, object: &Object, event: &Event, now: Timestamp) -> ApiEvent {
    let mut hasher = DefaultHasher::new();
    (&object.uid, event).hash(&mut hasher);
    let now = Time(now);
    let cut = |text: &str, limit: usize| text[..text.floor_char_boundary(limit)].to_owned();
    let namespace = Some(&*object.name.namespace).filter(|namespace| !namespace.is_empty()).unwrap_or("default");
    let begin = cut(&object.name.name, LONGEST_NAME);
    ApiEvent {
        metadata: ObjectMeta {
            // The same Event has the same name, also after a restart of the host.
            name: Some(format!("{}.{:016x}", begin.trim_end_matches(['.', '-']), hasher.finish())),
            namespace: Some(namespace.to_owned()),
            ..Default::default()
        },
        involved_object: ObjectReference {
            api_version: Some(kind.api_version.clone()),
            kind: Some(kind.kind.clone()),
            name: Some(object.name.name.to_string()),
            namespace: Some(object.name.namespace.to_string()).filter(|namespace| !namespace.is_empty()),
            uid: Some(object.uid.to_string()),
            resource_version: Some(object.resource_version.to_string()),
            ..Default::default()
        },
        type_: Some(if event.warning { "Warning" } else { "Normal" }.to_owned()),
        reason: Some(cut(&event.reason, LONGEST_REASON)),
        message: Some(cut(&event.message, LONGEST_MESSAGE)),
        count: Some(1),
        first_timestamp: Some(now.clone()),
        last_timestamp: Some(now),
        source: Some(EventSource { component: Some(labels::HOST.to_owned()), host: None }),
        reporting_component: Some(labels::HOST.to_owned()),
        ..Default::default()
    }
}

struct Writer {
    client: Client,
    written: HashMap<String, Written>,
}

/// An Event that is in the API server.
struct Written {
    namespace: String,
    count: i32,
    last: Option<Time>,
    at: Instant,
    /// Whether the count was raised since.
    behind: bool,
}

impl Writer {
    async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        loop {
            let behind = self.written.values().any(|written| written.behind);
            tokio::select! {
                command = commands.recv() => match command {
                    Some(Command::Write(event)) => self.take(*event).await,
                    Some(Command::Flush(written)) => {
                        self.catch_up(Duration::ZERO).await;
                        drop(written);
                    }
                    None => return self.catch_up(Duration::ZERO).await,
                },
                () = tokio::time::sleep(REPEAT), if behind => self.catch_up(REPEAT).await,
            }
        }
    }

    async fn take(&mut self, event: ApiEvent) {
        let name = event.metadata.name.clone().unwrap_or_default();
        if let Some(written) = self.written.get_mut(&name) {
            written.count += 1;
            (written.last, written.behind) = (event.last_timestamp, true);
            return self.catch_up(REPEAT).await;
        }
        if self.written.len() >= REMEMBERED {
            self.written.clear();
        }
        let namespace = event.metadata.namespace.clone().unwrap_or_default();
        let api = Api::<ApiEvent>::namespaced(self.client.clone(), &namespace);
        let written = match api.create(&PostParams::default(), &event).await {
            Ok(_) => Written { namespace, count: 1, last: event.last_timestamp, at: Instant::now(), behind: false },
            // Written before a restart of the host: go on counting.
            Err(kube::Error::Api(status)) if status.code == 409 => match api.get(&name).await {
                Ok(known) => {
                    let count = known.count.unwrap_or(1) + 1;
                    Written { namespace, count, last: event.last_timestamp, at: Instant::now() - REPEAT, behind: true }
                }
                Err(error) => return warn(&name, &error),
            },
            Err(error) => return warn(&name, &error),
        };
        self.written.insert(name, written);
        self.catch_up(REPEAT).await;
    }

    /// Writes the counts that were raised, unless they were written less than `pause` ago.
    async fn catch_up(&mut self, pause: Duration) {
        let mut gone = Vec::new();
        for (name, written) in &mut self.written {
            if !written.behind || written.at.elapsed() < pause {
                continue;
            }
            let api = Api::<ApiEvent>::namespaced(self.client.clone(), &written.namespace);
            let patch = Patch::Merge(json!({"count": written.count, "lastTimestamp": written.last}));
            if let Err(error) = api.patch(name, &PatchParams::default(), &patch).await {
                // Expired in the API server: the next repetition is a new Event.
                gone.push(name.clone());
                warn(name, &error);
            }
            (written.at, written.behind) = (Instant::now(), false);
        }
        gone.iter().for_each(|name| drop(self.written.remove(name)));
    }
}

fn warn(event: &str, error: &kube::Error) {
    tracing::warn!(event, "failed to write an event: {}", chain(error));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_what_the_api_server_takes_however_long_its_parts_are() {
        let kind = KindRef::new("example.com/v1", "Web");
        let written = |object: &Object, message: &str| {
            api_event(&kind, object, &Event::warning(&"R".repeat(200), message), Timestamp::UNIX_EPOCH)
        };
        for name in ["web".to_owned(), "w".repeat(253), format!("{}.-{}", "w".repeat(234), "w".repeat(17))] {
            let event = written(&Object::sample("ns", &name), &"ä".repeat(2000));
            let given = event.metadata.name.unwrap_or_default();
            assert!(given.len() <= 253 && !given.contains("..") && !given.contains("-."), "{given}");
            assert_eq!(event.reason.map(|reason| reason.len()), Some(LONGEST_REASON));
            assert_eq!(event.message.map(|message| message.len()), Some(LONGEST_MESSAGE));
            assert_eq!(event.involved_object.name, Some(name));
        }
        let cluster_scoped = written(&Object::sample("", "web"), "x");
        assert_eq!(cluster_scoped.metadata.namespace.as_deref(), Some("default"));
        let named = |message: &str| written(&Object::sample("ns", "web"), message).metadata.name;
        assert_eq!(named("x"), named("x"), "the same again is one Event");
        assert_ne!(named("x"), named("y"));
    }
}
