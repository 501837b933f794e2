//! The latest known schema of one kind. A schema that cannot be read stays unknown; nobody waits for it.

use std::{
    sync::{PoisonError, RwLock},
    time::Duration,
};

use pilothouse_engine::contract::KindRef;
use tokio::sync::Notify;

use super::schema_reader::SchemaReader;
use crate::{errors::chain, schema::Schema};

/// How often the API server is asked for a changed schema once somebody has requested a check: at first, and at last.
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
    /// The hash of the OpenAPI document that contains it.
    hash: Option<String>,
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
        let schema = match schemas.read(kind).await {
            Ok(schema) => schema,
            Err(error) => {
                tracing::debug!(%kind, "failed to read the schema, going on without: {}", chain(&error));
                return Loaded::Unchanged;
            }
        };
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.schema == schema {
            return Loaded::Unchanged;
        }
        known.schema = schema;
        Loaded::Changed
    }

    /// Waits until somebody has requested a check and the API server has another document.
    pub(super) async fn until_outdated(&self, schemas: &SchemaReader, kind: &KindRef) {
        // The API server publishes the schema of a new kind a little later than the kind itself, so a missing one is always checked.
        if self.get().is_some() {
            self.recheck_requested.notified().await;
        }
        let mut pause = POLL;
        loop {
            if let Ok(hashes) = schemas.hashes().await {
                let hash = hashes.of(kind).map(str::to_owned);
                let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
                let is_first = known.hash.is_none();
                let before = std::mem::replace(&mut known.hash, hash);
                // The first hash cannot be compared with the schema that was read before it, so the schema is read again.
                if known.hash.is_some() && (is_first || before != known.hash) {
                    return;
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(POLL_MAX);
        }
    }
}
