//! The simulated API server: answers requests as kube-apiserver does, from memory. It has no clock, no randomness and no
//! concurrency of its own, so the same requests always get the same answers.
//!
//! # Flow
//!
//! [`ApiServer::handle`] reads the path (`request`), finds the kind (`kinds`) and passes the request to a verb (`verbs`). A write goes
//! through decoding (`codec`), field ownership (`managed`, over `fields` and `schema`), admission, the kind's own functions and
//! checks, and into the store (`store`), which remembers every change. Watches read that history.
//!
//! # Caveats
//!
//! - Strategic merge patches are refused. The host does not use them.
//! - Of the rules in CEL that a schema can have, only `self == oldSelf` is known.
//! - Custom resources are converted between versions by their `apiVersion` alone.

mod admission;
mod allocator;
mod causes;
mod codec;
mod denial;
mod error;
mod fields;
mod garbage;
mod kinds;
mod managed;
mod metadata;
mod names;
mod path;
mod request;
mod schema;
mod selector;
mod store;
mod time;
mod user;
mod verbs;

use std::sync::Arc;

use bytes::Bytes;
use http::{Request as HttpRequest, Response};
use jiff::Timestamp;

pub use self::{
    admission::{Admission, Admitted},
    denial::Denial,
    error::{About, ApiError, Cause},
    kinds::{Catalog, CatalogError, Kind, Served},
    managed::{Entry, Managed, Operation},
    store::{Change, Object, ObjectRef, Revision},
    user::{Attributes, Rights, Rule, User},
    verbs::{Limit, Watch},
};
use self::{allocator::Allocator, request::Request};

/// One API server's state. A copy is cheap as long as it is small.
#[derive(Clone, Debug)]
pub struct ApiServer {
    catalog: Arc<Catalog>,
    served: Served,
    store: store::Store,
    allocator: Allocator,
    admission: Option<Admission>,
}

impl ApiServer {
    /// A server without objects, not even namespaces.
    pub fn new(catalog: Arc<Catalog>) -> Self {
        let served = catalog.served().clone();
        Self { catalog, served, store: store::Store::default(), allocator: Allocator::default(), admission: None }
    }

    /// Answers one request that is no watch. `now` is the server's time of day.
    pub fn handle(&mut self, now: Timestamp, user: &User, request: &HttpRequest<Bytes>) -> Response<Bytes> {
        self.answer(now, user, request).unwrap_or_else(|error| error.to_response())
    }

    /// Begins a watch (the request has `watch=true`).
    ///
    /// # Errors
    /// The response that refuses it. That a resource version is too old is not one: as from a real server, it is the first event of
    /// the watch.
    #[expect(clippy::result_large_err, reason = "a refusal is a response like any other")]
    pub fn watch(
        &mut self,
        now: Timestamp,
        user: &User,
        request: &HttpRequest<Bytes>,
    ) -> Result<Watch, Response<Bytes>> {
        self.begin_watch(now, user, request).map_err(|error| error.to_response())
    }

    /// Forgets the history up to a revision: watches and lists from before get 410.
    pub fn compact(&mut self, up_to: Revision) {
        self.store.compact(up_to);
    }

    /// The revision up to which the history is forgotten.
    pub fn compacted(&self) -> Revision {
        self.store.compacted()
    }

    /// Lets a function refuse or change writes, in place of the one before.
    pub fn set_admission(&mut self, admission: Option<Admission>) {
        self.admission = admission;
    }

    /// The present revision.
    pub fn revision(&self) -> Revision {
        self.store.revision()
    }

    /// The kinds that are served now.
    pub fn served(&self) -> &Served {
        &self.served
    }

    /// The objects of a resource (`deployments.apps`), in the order of namespaces and names.
    pub fn objects(&self, resource: &str) -> impl Iterator<Item = &Arc<Object>> {
        self.store.list(resource)
    }

    /// All objects.
    pub fn all_objects(&self) -> impl Iterator<Item = &Arc<Object>> {
        self.store.all()
    }

    /// One object; the namespace is empty for a cluster-scoped one.
    pub fn object(&self, resource: &str, namespace: &str, name: &str) -> Option<&Arc<Object>> {
        let key = if namespace.is_empty() { name.to_owned() } else { format!("{namespace}/{name}") };
        self.store.get(resource, &key)
    }

    /// The changes after a revision, each with who made it.
    pub fn changes_since(&self, revision: Revision) -> &[Change] {
        self.store.since(revision)
    }
}

/// Who asks, when, and for what.
struct Call<'a> {
    now: Timestamp,
    user: &'a User,
    request: Request<'a>,
    verb: &'static str,
    http: &'a HttpRequest<Bytes>,
}

impl Call<'_> {
    /// The name under which fields are owned: the one that is given, else the beginning of the user agent.
    fn manager(&self) -> String {
        match self.request.query.get("fieldManager") {
            "" => {
                let agent = self.http.headers().get(http::header::USER_AGENT).and_then(|agent| agent.to_str().ok());
                let name = agent.unwrap_or_default().split('/').next().unwrap_or_default();
                if name.is_empty() { "unknown".to_owned() } else { name.chars().take(128).collect() }
            }
            name => name.to_owned(),
        }
    }
}
