//! Kubernetes Events on objects: core/v1 Events with timestamps and a count, for `kubectl describe` and `kubectl get events`. A
//! repeated Event raises the count of the first one. Events are written in the background, so a reconcile never waits for them. When
//! the host stops, it writes the pending ones. Nothing depends on an Event being written, and there is a limit to how many are (`limiter.rs`).

mod limiter;

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
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
use pilothouse_engine::{
    Admission,
    contract::{EventType, KindRef},
};
use serde_json::json;
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

pub use self::limiter::Author;
use self::limiter::Limiter;
use crate::{clock::Clock, errors::chain, labels, object::Object};

/// The reason of an Event that tells of fields of a status which the CRD does not declare.
pub const STATUS_FIELDS_DROPPED: &str = "StatusFieldsDropped";

/// The most pending Events; more are dropped with a warning in the log.
const MAX_PENDING: usize = 4096;

/// How often the count of a repeated Event is written at most.
const COUNT_INTERVAL: Duration = Duration::from_secs(5);

/// The most Events whose counts are remembered. The API server deletes an Event after an hour anyway.
const MAX_REMEMBERED: usize = 4096;

/// The API server's limits (core/v1 Event validation). The name of an Event is that of its object, a dot and sixteen digits, and an
/// object's name has at most 253 characters.
const MAX_NAME: usize = 253 - 17;
const MAX_REASON: usize = 128;
const MAX_MESSAGE: usize = 1024;

/// An Event on an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Event {
    /// Whether its type is `Warning`.
    pub warning: bool,
    /// One CamelCase word.
    pub reason: String,
    /// A sentence.
    pub message: String,
}

impl Event {
    /// News that are no warning.
    pub fn normal(reason: &str, message: &str) -> Self {
        Self { warning: false, reason: reason.to_owned(), message: message.to_owned() }
    }

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

/// Records Events without waiting for the API server.
#[derive(Clone, Debug)]
pub struct Recorder {
    writer: mpsc::Sender<Command>,
    limiter: Arc<Limiter>,
    clock: Clock,
}

/// What became of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// It will be written.
    Yes,
    /// There are too many. The log tells it now and then.
    Dropped,
}

/// A command to the writer.
#[derive(Debug)]
enum Command {
    /// Writes an Event or raises its count.
    Write(Box<ApiEvent>),
    /// Writes everything that is pending, then drops the sender.
    Flush(oneshot::Sender<()>),
}

impl Recorder {
    /// Starts the writer, which ends when the last recorder is dropped. Needs a tokio runtime.
    pub fn start(client: Client, clock: Clock) -> Self {
        let (sender, receiver) = mpsc::channel(MAX_PENDING);
        tokio::spawn(Writer { client, written: BTreeMap::new() }.run(receiver));
        Self { writer: sender, limiter: Arc::default(), clock }
    }

    /// Records an Event on an object, of which several plugins may have something to tell.
    pub fn record(&self, author: Author<'_>, kind: &KindRef, object: &Object, event: &Event) -> Recorded {
        self.write(author, reference(kind, object), Some(author.plugin()), event)
    }

    /// Records an Event on what this refers to, with its UID.
    pub fn record_about(&self, author: Author<'_>, object: ObjectReference, event: &Event) -> Recorded {
        self.write(author, object, None, event)
    }

    /// `teller` is the plugin that the Event names.
    fn write(&self, author: Author<'_>, object: ObjectReference, teller: Option<&str>, event: &Event) -> Recorded {
        let (name, now) = (object.name.clone(), self.clock.now());
        match self.limiter.admit(author, &event.reason, object.uid.as_deref().unwrap_or_default(), now) {
            Admission::Admitted => {}
            Admission::Refused => return Recorded::Dropped,
            Admission::FirstRefused => {
                tracing::warn!(
                    object = name,
                    reason = event.reason,
                    "there are more Events than an object or a plugin may have; what is above the limit is dropped and counted in \
                     pilothouse_events_dropped_total"
                );
                return Recorded::Dropped;
            }
        }
        match self.writer.try_send(Command::Write(api_event(object, teller, event, now).into())) {
            Ok(()) => Recorded::Yes,
            Err(error) => {
                tracing::warn!(object = name, reason = event.reason, "an event is dropped: {error}");
                Recorded::Dropped
            }
        }
    }

    /// Waits until all Events recorded so far are written, with their counts.
    pub async fn flush(&self) {
        let (written, done) = oneshot::channel();
        if self.writer.send(Command::Flush(written)).await.is_ok() {
            // Resolves with an error when the writer drops its sender, which is the signal, or when the writer has ended.
            drop(done.await);
        }
    }
}

fn reference(kind: &KindRef, object: &Object) -> ObjectReference {
    ObjectReference {
        api_version: Some(kind.api_version.clone()),
        kind: Some(kind.kind.clone()),
        name: Some(object.name.name.to_string()),
        namespace: Some(object.name.namespace.to_string()).filter(|namespace| !namespace.is_empty()),
        uid: Some(object.uid.to_string()),
        resource_version: Some(object.resource_version.to_string()),
        ..Default::default()
    }
}

fn api_event(object: ObjectReference, plugin: Option<&str>, event: &Event, now: Timestamp) -> ApiEvent {
    let mut hasher = DefaultHasher::new();
    (object.uid.as_deref().unwrap_or_default(), plugin, event).hash(&mut hasher);
    let now = Time(now);
    let cut = |text: &str, limit: usize| text[..text.floor_char_boundary(limit)].to_owned();
    // The API server refuses an Event on a cluster-scoped object in an ordinary namespace. client-go uses `default`, too.
    let namespace = object.namespace.clone().unwrap_or_else(|| "default".to_owned());
    let begin = cut(object.name.as_deref().unwrap_or_default(), MAX_NAME);
    ApiEvent {
        metadata: ObjectMeta {
            // The same Event always gets the same name, also after a restart of the host.
            name: Some(format!("{}.{:016x}", begin.trim_end_matches(['.', '-']), hasher.finish())),
            namespace: Some(namespace),
            ..Default::default()
        },
        involved_object: object,
        type_: Some(if event.warning { "Warning" } else { "Normal" }.to_owned()),
        reason: Some(cut(&event.reason, MAX_REASON)),
        message: Some(cut(&event.message, MAX_MESSAGE)),
        count: Some(1),
        first_timestamp: Some(now.clone()),
        last_timestamp: Some(now),
        source: Some(EventSource { component: Some(labels::HOST.to_owned()), host: None }),
        reporting_component: Some(labels::HOST.to_owned()),
        reporting_instance: plugin.map(str::to_owned),
        ..Default::default()
    }
}

struct Writer {
    client: Client,
    written: BTreeMap<String, Written>,
}

/// An Event in the API server.
struct Written {
    namespace: String,
    count: i32,
    last_timestamp: Option<Time>,
    written_at: Instant,
    /// Whether the count was raised after the last write.
    count_pending: bool,
}

impl Writer {
    async fn run(mut self, mut commands: mpsc::Receiver<Command>) {
        loop {
            let count_pending = self.written.values().any(|written| written.count_pending);
            tokio::select! {
                biased;
                command = commands.recv() => match command {
                    Some(Command::Write(event)) => self.create_or_count(*event).await,
                    Some(Command::Flush(written)) => {
                        // The channel keeps the order, so all Events that were recorded before are created by now.
                        self.write_counts(Duration::ZERO).await;
                        drop(written);
                    }
                    None => return self.write_counts(Duration::ZERO).await,
                },
                () = tokio::time::sleep(COUNT_INTERVAL), if count_pending => self.write_counts(COUNT_INTERVAL).await,
            }
        }
    }

    async fn create_or_count(&mut self, event: ApiEvent) {
        let name = event.metadata.name.clone().unwrap_or_default();
        if let Some(written) = self.written.get_mut(&name) {
            written.count += 1;
            (written.last_timestamp, written.count_pending) = (event.last_timestamp, true);
            // Commands that keep coming would restart the timer in `run` for ever, so each repetition looks for counts that are
            // due.
            return self.write_counts(COUNT_INTERVAL).await;
        }
        if self.written.len() >= MAX_REMEMBERED {
            // This costs a request for each Event that is repeated: its create is answered with 409, and its count is read.
            self.written.clear();
        }
        let namespace = event.metadata.namespace.clone().unwrap_or_default();
        let api = Api::<ApiEvent>::namespaced(self.client.clone(), &namespace);
        let written = match api.create(&PostParams::default(), &event).await {
            Ok(_) => Written {
                namespace,
                count: 1,
                last_timestamp: event.last_timestamp,
                written_at: Instant::now(),
                count_pending: false,
            },
            // 409: the Event was created before a restart of the host, so its count goes on.
            Err(kube::Error::Api(status)) if status.code == 409 => match api.get(&name).await {
                Ok(known) => Written {
                    namespace,
                    count: known.count.unwrap_or(1) + 1,
                    last_timestamp: event.last_timestamp,
                    // Long enough ago that the count is written at once.
                    written_at: Instant::now() - COUNT_INTERVAL,
                    count_pending: true,
                },
                Err(error) => return warn(&name, &error),
            },
            Err(error) => return warn(&name, &error),
        };
        self.written.insert(name, written);
        self.write_counts(COUNT_INTERVAL).await;
    }

    /// Writes the raised counts, except those that were written less than `interval` ago.
    async fn write_counts(&mut self, interval: Duration) {
        let mut gone = Vec::new();
        for (name, written) in &mut self.written {
            if !written.count_pending || written.written_at.elapsed() < interval {
                continue;
            }
            let api = Api::<ApiEvent>::namespaced(self.client.clone(), &written.namespace);
            let patch = Patch::Merge(json!({"count": written.count, "lastTimestamp": written.last_timestamp}));
            if let Err(error) = api.patch(name, &PatchParams::default(), &patch).await {
                // The API server has probably deleted the Event after its hour: the next repetition creates a new one.
                gone.push(name.clone());
                warn(name, &error);
            }
            (written.written_at, written.count_pending) = (Instant::now(), false);
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
            let event = Event::warning(&"R".repeat(200), message);
            api_event(reference(&kind, object), Some("web"), &event, Timestamp::UNIX_EPOCH)
        };
        for name in ["web".to_owned(), "w".repeat(253), format!("{}.-{}", "w".repeat(234), "w".repeat(17))] {
            let event = written(&Object::sample("ns", &name), &"ä".repeat(2000));
            let given = event.metadata.name.unwrap_or_default();
            assert!(given.len() <= 253 && !given.contains("..") && !given.contains("-."), "{given}");
            assert_eq!(event.reason.map(|reason| reason.len()), Some(MAX_REASON));
            assert_eq!(event.message.map(|message| message.len()), Some(MAX_MESSAGE));
            assert_eq!(event.involved_object.name, Some(name));
        }
        let cluster_scoped = written(&Object::sample("", "web"), "x");
        assert_eq!(cluster_scoped.metadata.namespace.as_deref(), Some("default"));
        let named = |message: &str| written(&Object::sample("ns", "web"), message).metadata.name;
        assert_eq!(named("x"), named("x"), "the same again is one Event");
        assert_ne!(named("x"), named("y"));
    }
}
