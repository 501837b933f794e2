//! The simulated cluster that hosts and actors share: the API server, and a signal when something in it changes. Every write of a host
//! is shown to whoever judges it.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use http::{Method, Request, Response};
use jiff::Timestamp;
use kube::client::Body;
use pilothouse_controller::{observable::Observable, schema::SchemaCache};
use serde_json::{Value, json};

use crate::{
    api_server::{
        Admission, Admitted, ApiServer, Catalog, CatalogError, Change, Denial, Limit, Object, Revision, User, Watch,
    },
    documents,
    fault::RequestClass,
    host_id::HostId,
    kinds::{self, WidgetVersions},
    leases::{self, MissingLease},
    paths::OWN_NAMESPACE,
    plugin::{
        app,
        scope::{Place, Scope},
        simulated::Code,
        spec::ChildKind,
    },
    properties::writes::{HostWrite, Writes},
    record::Record,
    time::Time,
};

/// The record of kinds, from which a host that starts may remove what it has pruned.
const RECORD: &str = "/configmaps/pilothouse-kinds";

/// The documents that hosts read in a shorter form.
const DOCUMENTS: [&str; 3] = ["/openapi/v3/api/v1", "/openapi/v3/apis/apps/v1", "/openapi/v3/apis/batch/v1"];

/// A cluster with the kinds of the simulation and nothing else. Made once, and copied for each history.
pub struct Template {
    namespaced: ApiServer,
    cluster: ApiServer,
    /// How the plugin of the simulation runs.
    pub(crate) code: Code,
    /// The schemas that hosts have parsed.
    pub(crate) schemas: SchemaCache,
    documents: Arc<BTreeMap<String, Response<Bytes>>>,
}

/// What admission does with what hosts write.
#[derive(Debug, Default)]
struct Policy {
    /// The kinds that it refuses, and how.
    refused: BTreeMap<String, Denial>,
    /// Whether it adds to the others what nobody asked for, as a mesh adds its sidecars.
    adds: bool,
}

type SharedPolicy = Arc<Mutex<Policy>>;

/// The cluster.
pub struct Cluster {
    server: Mutex<ApiServer>,
    documents: Arc<BTreeMap<String, Response<Bytes>>>,
    revision: Observable<Revision>,
    /// The newest resource version of anything but Leases, Events and Pods.
    judged: Observable<Revision>,
    /// The newest resource version of each resource.
    signals: Mutex<HashMap<String, Arc<Observable<Revision>>>>,
    /// When which resource version was the newest.
    times: Mutex<Vec<(Duration, Revision)>>,
    policy: SharedPolicy,
    time: Time,
    record: Record,
    writes: Arc<Writes>,
}

impl Template {
    /// Makes it, with the plugin as native code.
    ///
    /// # Errors
    /// If the API server's documents are not as they should be.
    pub fn new() -> Result<Self, CatalogError> {
        Self::with(Code::Native)
    }

    /// Makes it, with the plugin as this code.
    ///
    /// # Errors
    /// As [`Template::new`].
    pub fn with(code: Code) -> Result<Self, CatalogError> {
        let catalog = Arc::new(Catalog::new()?);
        let mut namespaced = prepared(catalog.clone(), Scope::Namespaced);
        let documents = DOCUMENTS.iter().filter_map(|path| {
            let request = request(&Method::GET, path, None)?;
            let answer = namespaced.handle(Time::origin(), &User::admin("admin"), &request);
            Some(((*path).to_owned(), answer.map(|document| documents::reduced(&document))))
        });
        let documents = Arc::new(documents.collect());
        let (cluster, schemas) = (prepared(catalog, Scope::Cluster), SchemaCache::shared());
        Ok(Self { namespaced, cluster, code, schemas, documents })
    }
}

/// An API server with the kinds of a scope.
fn prepared(catalog: Arc<Catalog>, scope: Scope) -> ApiServer {
    let mut server = ApiServer::new(catalog);
    let namespaces = [Place::Home.namespace(), Place::Away.namespace(), OWN_NAMESPACE];
    let mut definitions = vec![kinds::object_crd(scope), kinds::widget_crd(WidgetVersions::First), app::crd()];
    definitions.extend((scope == Scope::Cluster).then(kinds::cluster_widget_crd));
    let namespaces = namespaces.map(|name| (kinds::namespaces().all(), namespace(name)));
    let definitions = definitions.into_iter().map(|crd| (kinds::crds().all(), crd));
    for (path, body) in namespaces.into_iter().chain(definitions) {
        if let Some(request) = request(&Method::POST, &path, Some(&body)) {
            let answer = server.handle(Time::origin(), &User::admin("admin"), &request);
            if !answer.status().is_success() {
                tracing::error!("{path}: {}", text(answer.body()));
            }
        }
    }
    server
}

/// A namespace as somebody creates it.
pub fn namespace(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
}

impl Cluster {
    /// A cluster of its own.
    pub fn new(template: &Template, scope: Scope, time: Time, record: Record, writes: Arc<Writes>) -> Arc<Self> {
        let mut server = match scope {
            Scope::Namespaced => template.namespaced.clone(),
            Scope::Cluster => template.cluster.clone(),
        };
        let policy = SharedPolicy::default();
        server.set_admission(Some(admission(policy.clone())));
        let revision = Observable::new(server.revision());
        let documents = template.documents.clone();
        let times = Mutex::new(vec![(Duration::ZERO, server.revision())]);
        let (server, signals) = (Mutex::new(server), Mutex::default());
        let judged = Observable::new(revision.get());
        Arc::new(Self { server, documents, revision, judged, signals, times, policy, time, record, writes })
    }

    /// The newest resource version.
    pub fn revision(&self) -> Revision {
        self.revision.get()
    }

    /// Waits until the newest resource version is another one.
    pub async fn until_changed(&self, from: Revision) {
        self.revision.wait_for(|revision| *revision != from).await;
    }

    /// The newest resource version of anything that is judged, to be waited for: of anything but Leases, Events and
    /// Pods.
    pub fn judged(&self) -> &Observable<Revision> {
        &self.judged
    }

    /// The newest resource version of anything of a resource, to be waited for.
    pub fn signal(&self, resource: &str) -> Arc<Observable<Revision>> {
        let mut signals = self.signals.lock().unwrap_or_else(PoisonError::into_inner);
        match signals.get(resource) {
            Some(signal) => signal.clone(),
            None => signals.entry(resource.to_owned()).or_default().clone(),
        }
    }

    /// A host sends a request, which is on its way now.
    pub fn sent(&self, host: HostId, request: &Request<Body>) {
        self.record.note(host, || format!("{} {}", request.method(), request.uri()));
        let is_write = || RequestClass::Write.has(request) || RequestClass::Event.has(request);
        if request.method() == Method::GET || !is_write() {
            return;
        }
        if let Some(MissingLease { lease, holder }) = leases::missing(&self.server(), host, request) {
            self.writes.wrote_without_lease(
                host,
                (&lease, &holder),
                &format!("{} {}", request.method(), request.uri()),
            );
        }
    }

    /// The time of day.
    pub fn now(&self) -> Timestamp {
        self.time.now()
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
                now: self.time.now(),
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

    /// The lines that a watch did not deliver yet, up to a revision if there is one.
    pub fn events(&self, watch: &mut Watch, revision: Option<Revision>) -> Vec<Bytes> {
        self.server().events(watch, Limit { revision, lines: None })
    }

    /// Whether the kind of a watch is still served as when the watch began. An API server ends a watch of which it is not.
    pub fn serves(&self, watch: &Watch) -> bool {
        self.server().serves(watch)
    }

    /// The newest resource version that there was some time ago.
    pub fn revision_before(&self, ago: Duration) -> Revision {
        let then = self.time.elapsed().saturating_sub(ago);
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let later = times.partition_point(|(time, _)| *time <= then);
        times.get(later.saturating_sub(1)).map_or(0, |(_, revision)| *revision)
    }

    /// How long ago the first resource version after this one was made; none if there is none.
    pub fn age_after(&self, revision: Revision) -> Option<Duration> {
        let times = self.times.lock().unwrap_or_else(PoisonError::into_inner);
        let next = times.partition_point(|(_, known)| *known <= revision);
        times.get(next).map(|(time, _)| self.time.elapsed().saturating_sub(*time))
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

    /// An object, if it exists. The namespace is empty for one without.
    pub fn get(&self, resource: &str, namespace: &str, name: &str) -> Option<Arc<Object>> {
        self.server().object(resource, namespace, name).cloned()
    }

    /// All objects of a kind but those of the hosts' own namespace.
    pub fn objects(&self, resource: &str) -> Vec<Arc<Object>> {
        self.server().objects(resource).filter(|object| object.namespace() != OWN_NAMESPACE).cloned().collect()
    }

    /// All children of a kind, and what else is of it, in the version that plugins know.
    pub fn children(&self, kind: ChildKind) -> Vec<Arc<Object>> {
        let server = self.server();
        let objects = server.objects(kind.resource()).filter(|object| object.namespace() != OWN_NAMESPACE);
        objects.map(|object| server.in_version(object, kind.api_version())).collect()
    }

    /// Forgets what happened until now.
    pub fn compact(&self) {
        let mut server = self.server();
        let revision = server.revision();
        server.compact(revision);
    }

    /// Admission refuses what hosts write of this kind; with no form of it, no more.
    pub fn refuse(&self, kind: &str, denial: Option<Denial>) {
        let refused = &mut self.policy().refused;
        match denial {
            Some(denial) => refused.insert(kind.to_owned(), denial),
            None => refused.remove(kind),
        };
    }

    /// Admission adds to what hosts write from now on.
    pub fn add_to_writes(&self) {
        self.policy().adds = true;
    }

    /// Admission refuses nothing.
    pub fn admit_all(&self) {
        self.policy().refused.clear();
    }

    /// The resource version up to which what happened is forgotten.
    pub fn compacted(&self) -> Revision {
        self.server().compacted()
    }

    /// How many things garbage collection has to do, if it had nothing to do at a revision.
    pub fn pending_garbage_after(&self, idle: Revision) -> usize {
        self.server().pending_garbage_after(idle)
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
        let (revision, before) = (server.revision(), self.revision.get());
        if revision == before {
            return;
        }
        self.times.lock().unwrap_or_else(PoisonError::into_inner).push((self.time.elapsed(), revision));
        for object in server.changes_since(before).iter().filter_map(Change::object) {
            self.signal(&object.kind.resource).set(revision);
            if ![kinds::LEASES, kinds::EVENTS, kinds::PODS].contains(&&*object.kind.resource) {
                self.judged.set(revision);
            }
            // A change of a definition is one for those who watch its kind.
            if *object.kind.resource == *kinds::DEFINITIONS {
                self.signal(object.name()).set(revision);
            }
        }
        self.revision.set(revision);
    }

    fn policy(&self) -> MutexGuard<'_, Policy> {
        self.policy.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn server(&self) -> MutexGuard<'_, ApiServer> {
        self.server.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Admission that refuses or changes what hosts write.
fn admission(policy: SharedPolicy) -> Admission {
    Admission::new(move |write: &mut Admitted<'_>| {
        if !write.user.starts_with("host-") {
            return Ok(());
        }
        let policy = policy.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(denial) = policy.refused.get(&*write.kind.names.kind) {
            return Err(denial.of(write, "test"));
        }
        if policy.adds && write.verb != "delete" {
            add_to(write);
        }
        Ok(())
    })
}

/// Adds what nobody asked for to a child, as a MutatingAdmissionPolicy does: an annotation, and to a Deployment one of its Pods and a field
/// of its own.
pub fn add_to(write: &mut Admitted<'_>) {
    let kind = &*write.kind.names.kind;
    let Some(child) = ChildKind::all(Scope::Cluster).iter().find(|child| child.as_str() == kind) else { return };
    let added = json!({"example.com/admitted": "yes"});
    json_patch::merge(&mut write.object["metadata"]["annotations"], &added);
    if *child == ChildKind::Deployment {
        let spec = &mut write.object["spec"];
        json_patch::merge(&mut spec["template"]["metadata"]["annotations"], &added);
        spec["revisionHistoryLimit"] = json!(3);
    }
}

fn request(method: &Method, path: &str, body: Option<&Value>) -> Option<Request<Bytes>> {
    let content = if *method == Method::PATCH { "application/merge-patch+json" } else { "application/json" };
    // Writing a value into memory cannot fail, and is quicker than formatting it.
    let bytes = body.map(|body| serde_json::to_vec(body).unwrap_or_default().into()).unwrap_or_default();
    Request::builder().method(method).uri(path).header("content-type", content).body(bytes).ok()
}

fn text(body: &Bytes) -> String {
    String::from_utf8_lossy(body).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn admission_adds_to_what_hosts_write_and_to_nothing_else() -> Result<(), CatalogError> {
        let (time, writes) = (Time::begin(), Arc::default());
        let cluster = Cluster::new(&Template::new()?, Scope::Namespaced, time, Record::none(), writes);
        cluster.add_to_writes();
        let admitted = |who: &str, name: &str| {
            let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
            cluster.ask(who, Method::POST, "/api/v1/namespaces/home/configmaps", Some(&body));
            let object = cluster.get(ChildKind::ConfigMap.resource(), "home", name)?;
            object.value["metadata"]["annotations"]["example.com/admitted"].as_str().map(str::to_owned)
        };
        assert_eq!(admitted("host-0.0", "a").as_deref(), Some("yes"));
        assert_eq!(admitted("user", "b"), None);
        Ok(())
    }
}
