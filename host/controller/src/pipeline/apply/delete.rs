//! The delete of exactly one object. Does not touch the cache; that is up to the caller.

use kube::{
    Api,
    api::{ApiResource, DeleteParams, Preconditions},
};

use crate::object::{Incoming, Object};

/// What must still be true of an object for a write or delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// It has the same UID.
    SameObject,
    /// It also has the same resource version, so nobody has changed it.
    SameState,
}

/// How long an object may take to go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grace {
    /// As long as its own grace period.
    Own,
    /// No time: it goes without its node.
    None,
}

/// Deletes an object. Returns its terminating state if finalizers or a grace period delay the deletion, and none if it is gone.
///
/// # Errors
/// [`kube::Error`]: 404 if no object has the name, 409 if the precondition does not hold.
pub async fn delete_exact(
    api: &Api<Incoming>,
    resource: &ApiResource,
    object: &Object,
    precondition: Precondition,
    grace: Grace,
) -> Result<Option<Object>, kube::Error> {
    let preconditions = Preconditions {
        uid: Some(object.uid.to_string()),
        resource_version: (precondition == Precondition::SameState).then(|| object.resource_version.to_string()),
    };
    // Background is not the default of all kinds: without it, the API server orphans the Pods of a `batch/v1` Job.
    let grace_period_seconds = (grace == Grace::None).then_some(0);
    let parameters = DeleteParams { grace_period_seconds, ..DeleteParams::background().preconditions(preconditions) };
    let answer = api.delete(&object.name.name, &parameters).await?;
    // If nothing delays the deletion, the answer is a `Status` or the object's last state (`is_over`), and the object is gone.
    let terminating = answer.left().map(|incoming| incoming.into_object(resource));
    Ok(terminating.filter(|terminating| terminating.deleting && !terminating.is_over()))
}
