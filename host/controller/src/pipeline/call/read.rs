//! Finds out what the lookups of a call needed and nobody knew: whether the plugin's account may make them, and what is in objects of which
//! only the metadata is watched. Decides nothing about who may.

use futures::stream::{self, StreamExt, TryStreamExt};
use kube::Client;

use crate::{
    identity::{AskError, Identities},
    lookups::{CachedLookups, Contents, Place, ToRead},
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

/// What a call needed could not be found out.
#[derive(Debug)]
pub enum NotLearned {
    /// What the account may look up.
    Asked(AskError),
    /// What is in an object.
    Read(ReadError),
}

/// Finds out what the lookups of a call of a key needed. Whether there was anything: then the call is to be made again.
///
/// # Errors
/// [`NotLearned`]: the first that could not be found out. An object that is gone is no error.
pub async fn learn(
    lookups: &CachedLookups,
    identities: &Identities,
    client: &Client,
    user: &Key,
) -> Result<bool, NotLearned> {
    let (open, to_read) = (lookups.open_questions(), lookups.needed.to_read());
    if open.is_empty() && to_read.is_empty() {
        return Ok(false);
    }
    identities.ask(open).await.map_err(NotLearned::Asked)?;
    read_all(client, &lookups.contents, user, to_read).await.map_err(NotLearned::Read)?;
    Ok(true)
}

async fn read_all(client: &Client, contents: &Contents, user: &Key, to_read: Vec<ToRead>) -> Result<(), ReadError> {
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
