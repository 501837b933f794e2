//! One request that deletes exactly one object, and what its answer says of it. What that means for the cache is up to the
//! caller.

use kube::{
    Api,
    api::{ApiResource, DeleteParams, Preconditions},
};

use crate::object::{Incoming, Object};

/// What must still be true of an object that is deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precondition {
    /// It is the same object, in whatever state.
    SameObject,
    /// It is in the very state that was seen.
    SameState,
}

/// Deletes an object: its last state while somebody holds it or is given time to end it, none if it is gone.
///
/// # Errors
/// [`kube::Error`]: 404 where nothing has the name, 409 where it is another object or state.
pub async fn exactly(
    api: &Api<Incoming>,
    resource: &ApiResource,
    object: &Object,
    precondition: Precondition,
) -> Result<Option<Object>, kube::Error> {
    let preconditions = Preconditions {
        uid: Some(object.uid.to_string()),
        resource_version: (precondition == Precondition::SameState).then(|| object.resource_version.to_string()),
    };
    let parameters = DeleteParams::background().preconditions(preconditions);
    let answer = api.delete(&object.name.name, &parameters).await?;
    let terminating = answer.left().map(|incoming| incoming.into_object(resource));
    Ok(terminating.filter(|terminating| terminating.deleting && !terminating.is_over()))
}
