//! Reads what is in objects of which only the metadata is watched, when a plugin looks them up. Decides nothing about who may.

use futures::stream::{self, StreamExt, TryStreamExt};
use kube::Client;

use crate::{
    lookups::{Contents, Place, ToRead},
    object::describe,
    queue::Key,
};

/// How many are read at once. They share the connection with all other requests.
const AT_ONCE: usize = 16;

/// An object could not be read.
#[derive(Debug, thiserror::Error)]
#[error("failed to read {what}: {}", crate::errors::chain(error))]
pub struct ReadError {
    /// The object.
    pub what: String,
    /// The error of the request.
    pub error: kube::Error,
}

/// Reads objects that a key has looked up.
///
/// # Errors
/// [`ReadError`] of the first that could not be read. One that is gone is no error.
pub async fn read_all(client: &Client, contents: &Contents, user: &Key, to_read: Vec<ToRead>) -> Result<(), ReadError> {
    let reads = to_read.into_iter().map(|ToRead { informer, told }| async move {
        // Without its kind nothing of it is left, and the next answer says so.
        let Some(installed) = informer.installed() else { return Ok(()) };
        let found = installed.api(client, &told.name.namespace).get_opt(&told.name.name).await;
        let found = found.map_err(|error| ReadError { what: describe(informer.kind(), &told.name), error })?;
        let read = found.map(|incoming| incoming.into_object(&installed.resource));
        contents.put(user, Place::of(&informer, &told), &told, read);
        Ok(())
    });
    stream::iter(reads).buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await.map(drop)
}
