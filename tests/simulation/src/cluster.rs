//! The simulated cluster that hosts and actors share: the API server, and a signal when something in it changes. Every write of a host
//! is shown to whoever judges it.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use bytes::Bytes;
use http::{Method, Request, Response};
use kube::client::Body;
use pilothouse_controller::observable::Observable;
use serde_json::{Value, json};

use crate::{
    api_server::{
        About, Admission, Admitted, ApiError, ApiServer, Catalog, CatalogError, Change, Limit, Object, User, Watch,
    },
    documents,
    fault::RequestClass,
    host_id::HostId,
    kinds,
    paths::{NAMESPACE, OWN_NAMESPACE},
    properties::writes::{HostWrite, Writes},
    record::Record,
    time::Time,
};

/// The record of kinds, from which a host that starts may remove what it has pruned.
const RECORD: &str = "/configmaps/pilothouse-kinds";

/// The documents that hosts read in a shorter form.
const DOCUMENTS: [&str; 2] = ["/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1"];

/// A cluster with the kinds of the simulation and nothing else. Made once, and copied for each history.
pub struct Template {
    server: ApiServer,
    documents: Arc<BTreeMap<String, Response<Bytes>>>,
}

/// The cluster.
pub struct Cluster {
    server: Mutex<ApiServer>,
    documents: Arc<BTreeMap<String, Response<Bytes>>>,
    revision: Observable<u64>,
    /// The kinds that admission refuses when a host writes them.
    refused: Arc<Mutex<BTreeSet<String>>>,
    time: Time,
    record: Record,
    writes: Arc<Writes>,
}

impl Template {
    /// Makes it.
    ///
    /// # Errors
    /// If the API server's documents are not as they should be.
    pub fn new() -> Result<Self, CatalogError> {
        let mut server = ApiServer::new(Arc::new(Catalog::new()?));
        let admin = User::admin("admin");
        let namespaces = [NAMESPACE, OWN_NAMESPACE]
            .map(|name| json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}));
        let namespaces = namespaces.map(|namespace| ("/api/v1/namespaces".to_owned(), namespace));
        let definitions = [kinds::simulated_crd(), kinds::widget_crd()].map(|crd| (kinds::crds().all(), crd));
        for (path, body) in namespaces.into_iter().chain(definitions) {
            if let Some(request) = request(&Method::POST, &path, Some(&body)) {
                let answer = server.handle(Time::origin(), &admin, &request);
                if !answer.status().is_success() {
                    tracing::error!("{path}: {}", text(answer.body()));
                }
            }
        }
        let documents = DOCUMENTS.iter().filter_map(|path| {
            let answer = server.handle(Time::origin(), &admin, &request(&Method::GET, path, None)?);
            Some(((*path).to_owned(), answer.map(|document| documents::reduced(&document))))
        });
        let documents = Arc::new(documents.collect());
        Ok(Self { server, documents })
    }
}

impl Cluster {
    /// A cluster of its own.
    pub fn new(template: &Template, time: Time, record: Record, writes: Arc<Writes>) -> Arc<Self> {
        let mut server = template.server.clone();
        let refused = Arc::<Mutex<BTreeSet<String>>>::default();
        server.set_admission(Some(admission(refused.clone())));
        let revision = Observable::new(server.revision());
        let documents = template.documents.clone();
        Arc::new(Self { server: Mutex::new(server), documents, revision, refused, time, record, writes })
    }

    /// The newest resource version.
    pub fn revision(&self) -> u64 {
        self.revision.get()
    }

    /// Waits until the newest resource version is another one.
    pub async fn until_changed(&self, from: u64) {
        self.revision.wait_for(|revision| *revision != from).await;
    }

    /// A host sends a request, which is on its way now.
    pub fn sent(&self, host: HostId, request: &Request<Body>) {
        self.record.note(&host.to_string(), || format!("{} {}", request.method(), request.uri()));
        let is_write = RequestClass::Write.has(request) || RequestClass::Event.has(request);
        if !is_write {
            return;
        }
        let server = self.server();
        let Some(lease) = server.objects(kinds::LEASES).next() else { return };
        let holder = lease.value.pointer("/spec/holderIdentity").and_then(Value::as_str).unwrap_or_default();
        if holder != host.to_string() {
            self.writes.wrote_without_lease(host, holder, &format!("{} {}", request.method(), request.uri()));
        }
    }

    /// Answers a host's request.
    pub fn handle(&self, host: HostId, request: &Request<Bytes>) -> Response<Bytes> {
        if let Some(document) = self.documents.get(request.uri().path()) {
            return document.clone();
        }
        let mut server = self.server();
        let before = server.revision();
        let answer = server.handle(self.time.now(), &User::admin(&host.to_string()), request);
        if RequestClass::Write.has(request) && !request.uri().path().ends_with(RECORD) {
            self.writes.asked(|| format!("{host}: {} {}", request.method(), request.uri()));
        }
        for change in server.changes_since(before) {
            self.show(change, false);
            self.writes.wrote(HostWrite {
                host,
                before: change.before.as_ref().map(|object| &object.value),
                after: change.after.as_ref().map(|object| &object.value),
                is_delete: change.verb == "delete",
            });
        }
        self.record.note("server", || {
            let body =
                if request.method() == Method::GET { String::new() } else { format!(" {}", text(request.body())) };
            let why = if answer.status().is_success() { String::new() } else { format!(" -> {}", text(answer.body())) };
            format!("{} to {host}: {} {}{body}{why}", answer.status(), request.method(), request.uri())
        });
        self.announce(&server);
        answer
    }

    /// Starts a host's watch.
    ///
    /// # Errors
    /// The answer with which the API server refuses it.
    pub fn watch(&self, host: HostId, request: &Request<Bytes>) -> Result<Watch, Box<Response<Bytes>>> {
        self.server().watch(self.time.now(), &User::admin(&host.to_string()), request).map_err(Box::new)
    }

    /// The lines that a watch did not deliver yet.
    pub fn events(&self, watch: &mut Watch) -> Vec<Bytes> {
        self.server().events(watch, Limit::default())
    }

    /// A bookmark.
    pub fn bookmark(&self, watch: &Watch) -> Option<Bytes> {
        self.server().bookmark(watch)
    }

    /// Sends somebody's request, whatever its answer.
    pub fn ask(&self, who: &str, method: Method, path: &str, body: Option<&Value>) {
        let Some(request) = request(&method, path, body) else { return };
        let mut server = self.server();
        let before = server.revision();
        let answer = server.handle(self.time.now(), &User::admin(who), &request);
        server.changes_since(before).iter().for_each(|change| self.show(change, false));
        self.record.note(who, || {
            let why = if answer.status().is_success() { String::new() } else { format!(" -> {}", text(answer.body())) };
            format!("{method} {path} {}: {}{why}", text(request.body()), answer.status())
        });
        self.announce(&server);
    }

    /// An object of the default namespace, if it exists.
    pub fn get(&self, resource: &str, name: &str) -> Option<Arc<Object>> {
        self.server().object(resource, "default", name).cloned()
    }

    /// A cluster-scoped object, if it exists.
    pub fn get_cluster_scoped(&self, resource: &str, name: &str) -> Option<Arc<Object>> {
        self.server().object(resource, "", name).cloned()
    }

    /// All objects of a kind in the default namespace.
    pub fn objects(&self, resource: &str) -> Vec<Arc<Object>> {
        self.server().objects(resource).filter(|object| object.namespace() == "default").cloned().collect()
    }

    /// Forgets what happened until now.
    pub fn compact(&self) {
        let mut server = self.server();
        let revision = server.revision();
        server.compact(revision);
    }

    /// Admission refuses what hosts write of this kind, or no more.
    pub fn refuse(&self, kind: &str, refuses: bool) {
        let mut refused = self.refused.lock().unwrap_or_else(PoisonError::into_inner);
        match refuses {
            true => refused.insert(kind.to_owned()),
            false => refused.remove(kind),
        };
    }

    /// Admission refuses nothing.
    pub fn admit_all(&self) {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// How many things garbage collection has to do.
    pub fn pending_garbage(&self) -> usize {
        self.server().pending_garbage()
    }

    /// Garbage collection does one of them.
    pub fn collect_garbage(&self, index: usize) {
        let mut server = self.server();
        let before = server.revision();
        server.collect_garbage_at(index, self.time.now());
        for change in server.changes_since(before) {
            self.show(change, true);
            self.record.note("garbage", || {
                let object = change.object().map(|object| format!("{}/{}", object.kind.names.kind, object.key));
                format!("{} {}", change.verb, object.unwrap_or_default())
            });
        }
        self.announce(&server);
    }

    /// Shows a change to whoever judges it.
    fn show(&self, change: &Change, by_garbage_collection: bool) {
        let (before, after) = (change.before.as_ref(), change.after.as_ref());
        self.writes.changed(by_garbage_collection, before.map(|it| &it.value), after.map(|it| &it.value));
    }

    fn announce(&self, server: &ApiServer) {
        self.revision.set(server.revision());
    }

    fn server(&self) -> MutexGuard<'_, ApiServer> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Admission that refuses some kinds when a host writes them.
fn admission(refused: Arc<Mutex<BTreeSet<String>>>) -> Admission {
    Admission::new(move |write: &mut Admitted<'_>| {
        let refused = refused.lock().unwrap_or_else(PoisonError::into_inner);
        if !write.user.starts_with("host-") || !refused.contains(&*write.kind.names.kind) {
            return Ok(());
        }
        let names = &write.kind.names;
        let name = write.object["metadata"]["name"].as_str().unwrap_or_default();
        let about = About { group: &names.group, resource: &names.plural, name };
        Err(ApiError::forbidden(about, "a policy of the cluster denies it"))
    })
}

fn request(method: &Method, path: &str, body: Option<&Value>) -> Option<Request<Bytes>> {
    let content = if *method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    let bytes = body.map(|body| Bytes::from(body.to_string())).unwrap_or_default();
    Request::builder().method(method).uri(path).header("content-type", content).body(bytes).ok()
}

fn text(body: &Bytes) -> String {
    String::from_utf8_lossy(body).into_owned()
}
