//! The latest known schema of one kind. A schema that cannot be read stays unknown; nobody waits for it.

use std::{
    sync::{PoisonError, RwLock},
    time::Duration,
};

use futures::FutureExt;
use pilothouse_engine::contract::KindRef;
use tokio::sync::Notify;

use super::schema_reader::{SchemaAnswer, SchemaReader};
use crate::{errors::chain, schema::Schema};

/// The interval at which the API server is asked for a changed schema after a check was requested: the first one and the longest one.
const POLL: Duration = Duration::from_secs(1);
const POLL_MAX: Duration = Duration::from_secs(10);

/// A kind's schema.
#[derive(Debug, Default)]
pub(super) struct SchemaCell {
    known: RwLock<Known>,
    recheck_requested: Notify,
}

#[derive(Debug, Default)]
struct Known {
    schema: Option<Schema>,
    /// The ETag of the OpenAPI document that it was read from.
    etag: Option<String>,
}

/// The effect of reading a schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loaded {
    /// It is the same as before, or could not be read.
    Unchanged,
    /// It differs from the one before.
    Changed,
}

impl SchemaCell {
    pub(super) fn get(&self) -> Option<Schema> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).schema.clone()
    }

    /// Forgets the schema: the kind is no longer installed.
    pub(super) fn clear(&self) {
        *self.known.write().unwrap_or_else(PoisonError::into_inner) = Known::default();
    }

    /// Requests a check for a newer schema.
    pub(super) fn recheck(&self) {
        self.recheck_requested.notify_one();
    }

    /// Reads the schema from the API server.
    pub(super) async fn load(&self, schemas: &SchemaReader, kind: &KindRef) -> Loaded {
        let etag = self.known.read().unwrap_or_else(PoisonError::into_inner).etag.clone();
        let (schema, etag) = match schemas.read(kind, etag.as_deref()).await {
            Ok(SchemaAnswer::Schema(schema, etag)) => (schema, etag),
            Ok(SchemaAnswer::Unchanged) => return Loaded::Unchanged,
            Err(error) => {
                tracing::debug!(%kind, "failed to read the schema, going on without: {}", chain(&error));
                return Loaded::Unchanged;
            }
        };
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        // Also if the schema is the same: a document has all kinds of a group and version, and a change of any of them changes its
        // ETag.
        known.etag = etag;
        if known.schema == schema {
            return Loaded::Unchanged;
        }
        // Requests for a check up to here were about the previous schema, so a stored one is taken out of the `Notify`. A field that
        // is missing in this schema leads to a new request.
        self.recheck_requested.notified().now_or_never();
        known.schema = schema;
        Loaded::Changed
    }

    /// Waits until somebody has requested a check and the API server has another schema.
    ///
    /// The document itself is read again, unless its ETag is the known one. The index of documents with their hashes would be
    /// smaller, but it is behind the documents by up to a second. After two quick changes it can show a hash that is known already,
    /// and the change in between would never be noticed.
    pub(super) async fn until_changed(&self, schemas: &SchemaReader, kind: &KindRef) {
        // The API server publishes the schema of a new kind a little later than the kind itself, so a missing schema is read again
        // without a request.
        if self.get().is_some() {
            self.recheck_requested.notified().await;
        }
        let mut pause = POLL;
        while self.load(schemas, kind).await == Loaded::Unchanged {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(POLL_MAX);
        }
    }
}
