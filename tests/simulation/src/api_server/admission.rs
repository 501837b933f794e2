//! Admission: what may refuse or change a write before it is checked. The server's own part is about namespaces and Pods; the rest
//! is a function that whoever runs the server gives.

use std::{fmt, sync::Arc};

use serde_json::Value;

use super::{
    error::{ApiError, Cause},
    kinds::{Kind, admit_pod},
    store::Store,
};

/// A write that is to be admitted.
#[derive(Debug)]
pub struct Admitted<'a> {
    /// The kind.
    pub kind: &'a Kind,
    /// The verb: `create`, `update` or `delete`.
    pub verb: &'static str,
    /// The namespace; empty for a cluster-scoped object.
    pub namespace: &'a str,
    /// The user.
    pub user: &'a str,
    /// The object as it was; none if it is new.
    pub before: Option<&'a Value>,
    /// The object as it is to be, which may be changed; the old one for a delete.
    pub object: &'a mut Value,
}

/// A function that admits writes.
#[derive(Clone)]
pub struct Admission(Arc<Admit>);

/// What is asked about a write.
type Admit = dyn Fn(&mut Admitted<'_>) -> Result<(), ApiError> + Send + Sync;

impl Admission {
    /// Asks this function about each write.
    pub fn new(admit: impl Fn(&mut Admitted<'_>) -> Result<(), ApiError> + Send + Sync + 'static) -> Self {
        Self(Arc::new(admit))
    }

    /// Asks about a write.
    ///
    /// # Errors
    /// What the function refuses with.
    pub fn admit(&self, write: &mut Admitted<'_>) -> Result<(), ApiError> {
        (self.0)(write)
    }
}

impl fmt::Debug for Admission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Admission")
    }
}

/// The server's own admission: the namespace of a new object must exist and not be on its way out, and Pods get what they need.
///
/// # Errors
/// 404 without the namespace, 403 while it ends.
pub(super) fn admit_write(store: &Store, write: &mut Admitted<'_>) -> Result<(), ApiError> {
    if write.kind.namespaced && write.verb == "create" {
        check_namespace(store, write)?;
    }
    if *write.kind.resource == *"pods" {
        admit_pod(write.object);
    }
    Ok(())
}

fn check_namespace(store: &Store, write: &Admitted<'_>) -> Result<(), ApiError> {
    let about = super::error::About { group: "", resource: "namespaces", name: write.namespace };
    let Some(namespace) = store.get("namespaces", write.namespace) else { return Err(ApiError::not_found(about)) };
    if !namespace.is_deleting() {
        return Ok(());
    }
    let name = write.object["metadata"]["name"].as_str().unwrap_or_default();
    let why = format!("unable to create new content in namespace {} because it is being terminated", write.namespace);
    let message = format!("namespace {} is being terminated", write.namespace);
    let cause = Cause::new("NamespaceTerminating", "metadata.namespace", message);
    Err(ApiError::forbidden(write.kind.about(name), &why).caused_by(cause))
}
