//! An API server in memory for one host: it answers at once, and tells how long it computed. Nothing goes wrong in it.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use futures::{FutureExt, future::BoxFuture, stream};
use http::{Method, Request, Response};
use http_body::Frame;
use http_body_util::{BodyExt, Full, StreamBody, combinators::UnsyncBoxBody};
use jiff::Timestamp;
use kube::client::Body;
use pilothouse_simulation::api_server::{ApiServer, Catalog, Limit, Revision, User, Watch};
use serde_json::{Value, json};
use tokio::sync::watch;
use tower::{BoxError, service_fn, util::BoxCloneService};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const OBJECTS: &str = "/apis/apps.example.com/v1/namespaces/default/appservices";

/// How long a phase may take.
const PATIENCE: Duration = Duration::from_secs(300);

type AnswerBody = UnsyncBoxBody<Bytes, BoxError>;

/// The server.
pub struct Server {
    inner: Mutex<ApiServer>,
    /// The newest revision, for the watches.
    revision: watch::Sender<Revision>,
    /// What it has done until now.
    counts: watch::Sender<Counts>,
}

/// What it has done for the host.
#[derive(Clone, Copy, Default)]
pub struct Counts {
    /// The time in which it computed, also for those who are no host.
    pub spent: Duration,
    /// The requests that are no watches.
    pub requests: usize,
    /// Those that write.
    pub writes: usize,
}

impl Server {
    /// A server with the kind `AppService` and a namespace.
    ///
    /// # Errors
    /// It refuses them.
    pub fn new() -> Result<Arc<Self>> {
        let server = ApiServer::new(Arc::new(Catalog::new()?));
        let (inner, counts) = (Mutex::new(server), watch::Sender::new(Counts::default()));
        let server = Self { inner, revision: watch::Sender::new(0), counts };
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}});
        server.somebody_sends(&Method::POST, "/api/v1/namespaces", &namespace)?;
        server.somebody_sends(&Method::POST, DEFINITIONS, &app_service::crd::crd())?;
        Ok(Arc::new(server))
    }

    /// Somebody creates the object with this number.
    ///
    /// # Errors
    /// It is refused.
    pub fn create(&self, number: usize) -> Result<()> {
        let object = json!({
            "apiVersion": "apps.example.com/v1", "kind": "AppService", "metadata": {"name": name(number)},
            "spec": {"replicas": 2, "image": "example.com/app:1"},
        });
        self.somebody_sends(&Method::POST, OBJECTS, &object)
    }

    /// Somebody gives the object with this number another image.
    ///
    /// # Errors
    /// It is refused.
    pub fn change(&self, number: usize) -> Result<()> {
        let patch = json!({"spec": {"image": "example.com/app:2"}});
        self.somebody_sends(&Method::PATCH, &format!("{OBJECTS}/{}", name(number)), &patch)
    }

    /// Waits until the host has written so often.
    ///
    /// # Errors
    /// It never does.
    pub async fn until_written(&self, writes: usize) -> Result<()> {
        let written = async { self.counts.subscribe().wait_for(|now| now.writes >= writes).await.map(drop) };
        let written = tokio::time::timeout(PATIENCE, written).await;
        written.with_context(|| format!("the host made {} of {writes} writes", self.counts().writes))??;
        Ok(())
    }

    /// What it has done until now.
    pub fn counts(&self) -> Counts {
        *self.counts.borrow()
    }

    /// The host's connection.
    pub fn connection(self: &Arc<Self>) -> BoxCloneService<Request<Body>, Response<AnswerBody>, BoxError> {
        let server = self.clone();
        BoxCloneService::new(service_fn(move |request| server.clone().answer(request)))
    }

    fn answer(self: Arc<Self>, request: Request<Body>) -> BoxFuture<'static, Result<Response<AnswerBody>, BoxError>> {
        async move {
            let (parts, body) = request.into_parts();
            let request = Request::from_parts(parts, body.collect().await?.to_bytes());
            let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            Ok(if is_watch { self.start_watch(&request) } else { self.handle(&request).map(whole) })
        }
        .boxed()
    }

    fn handle(&self, request: &Request<Bytes>) -> Response<Bytes> {
        let answer = self.computing(|server| server.handle(Timestamp::now(), &User::admin("host"), request));
        self.counts.send_modify(|counts| {
            counts.requests += 1;
            counts.writes += usize::from(request.method() == Method::PATCH);
        });
        answer
    }

    fn start_watch(self: &Arc<Self>, request: &Request<Bytes>) -> Response<AnswerBody> {
        let begun =
            self.computing(|server| server.watch(Timestamp::now(), &User::admin("host"), request).map_err(Box::new));
        let watch = match begun {
            Ok(watch) => watch,
            Err(refusal) => return (*refusal).map(whole),
        };
        let stream = (self.clone(), watch, self.revision.subscribe());
        let frames = stream::unfold(stream, |(server, mut watch, mut revision)| async move {
            let lines = server.next_lines(&mut watch, &mut revision).await?;
            Some((Ok(Frame::data(lines)), (server, watch, revision)))
        });
        Response::new(StreamBody::new(frames).boxed_unsync())
    }

    /// The next lines of a watch; none when it is over.
    async fn next_lines(&self, watch: &mut Watch, revision: &mut watch::Receiver<Revision>) -> Option<Bytes> {
        loop {
            revision.mark_unchanged();
            let lines = self.computing(|server| server.events(watch, Limit { revision: None, lines: None }));
            if !lines.is_empty() {
                return Some(lines.concat().into());
            }
            if watch.is_over() || revision.changed().await.is_err() {
                return None;
            }
        }
    }

    fn somebody_sends(&self, method: &Method, path: &str, body: &Value) -> Result<()> {
        let content = if *method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
        let request = Request::builder().method(method).uri(path).header("content-type", content);
        let request = request.body(Bytes::from(serde_json::to_vec(body)?))?;
        let answer = self.computing(|server| server.handle(Timestamp::now(), &User::admin("somebody"), &request));
        ensure!(answer.status().is_success(), "{path}: {}", String::from_utf8_lossy(answer.body()));
        Ok(())
    }

    /// Has it compute something, and counts the time.
    fn computing<T>(&self, work: impl FnOnce(&mut ApiServer) -> T) -> T {
        let mut server = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let began = Instant::now();
        let result = work(&mut server);
        let (spent, newest) = (began.elapsed(), server.revision());
        drop(server);
        self.counts.send_modify(|counts| counts.spent += spent);
        self.revision.send_if_modified(|revision| std::mem::replace(revision, newest) != newest);
        result
    }
}

fn whole(bytes: Bytes) -> AnswerBody {
    Full::new(bytes).map_err(|never| match never {}).boxed_unsync()
}

fn name(number: usize) -> String {
    format!("object-{number}")
}
