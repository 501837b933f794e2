//! Reads schemas for all watches, one after another. Kinds of one group and version share a document of up to a megabyte. It is kept
//! only as long as another watch waits for a schema.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use kube::Client;
use pilothouse_engine::contract::KindRef;
use tokio::sync::Mutex;

use crate::{
    kinds::{self, DocumentAnswer, SchemaDocument},
    schema::{Schema, SchemaCache},
};

/// Reads schemas.
pub(super) struct SchemaReader {
    client: Client,
    parsed: SchemaCache,
    /// How many watches wait for a schema, or read one.
    waiting: AtomicUsize,
    /// The document that was read last.
    last: Mutex<Option<KeptDocument>>,
}

/// A document, or that there is none, for a group and version.
struct KeptDocument {
    api_version: String,
    document: Option<Arc<SchemaDocument>>,
}

/// The answer to a request for a schema.
pub(super) enum SchemaAnswer {
    /// The document with the schema still has the known ETag.
    Unchanged,
    /// The schema, none where the API server has none, and the ETag of its document.
    Schema(Option<Schema>, Option<String>),
}

/// One watch that waits. It no longer does when this is dropped, even if its read was given up.
struct Waiting<'r> {
    count: &'r AtomicUsize,
    /// Whether nobody waited before it.
    is_first: bool,
}

impl<'r> Waiting<'r> {
    fn begin(count: &'r AtomicUsize) -> Self {
        Self { count, is_first: count.fetch_add(1, Ordering::AcqRel) == 0 }
    }

    /// Whether nobody else waits.
    fn is_last(&self) -> bool {
        self.count.load(Ordering::Acquire) == 1
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.count.fetch_sub(1, Ordering::AcqRel);
    }
}

impl SchemaReader {
    /// Reads with this client what is not parsed yet.
    pub(super) fn new(client: Client, parsed: SchemaCache) -> Self {
        Self { client, parsed, waiting: AtomicUsize::new(0), last: Mutex::default() }
    }

    /// Reads the schema of a kind, unless its document still has the ETag `known`.
    ///
    /// # Errors
    /// The error of the request, or of parsing its answer.
    pub(super) async fn read(&self, kind: &KindRef, known: Option<&str>) -> Result<SchemaAnswer, kube::Error> {
        let waiting = Waiting::begin(&self.waiting);
        // The lock is held during the request: readers of the same document wait here and then find it in `last`.
        let mut last = self.last.lock().await;
        // A reader that was given up during its request could not tidy up.
        if waiting.is_first {
            *last = None;
        }
        let result = self.read_with(&mut last, kind, known).await;
        if waiting.is_last() {
            *last = None;
        }
        result
    }

    async fn read_with(
        &self,
        last: &mut Option<KeptDocument>,
        kind: &KindRef,
        known: Option<&str>,
    ) -> Result<SchemaAnswer, kube::Error> {
        let kept = last.as_ref().filter(|kept| kept.api_version == kind.api_version);
        let document = match kept {
            Some(kept) => kept.document.clone(),
            None => {
                // Two documents at a time would take twice the memory.
                *last = None;
                let document = match kinds::schema_document(&self.client, kind, known).await? {
                    DocumentAnswer::Unchanged => return Ok(SchemaAnswer::Unchanged),
                    DocumentAnswer::Missing => None,
                    DocumentAnswer::Document(document) => Some(Arc::new(document)),
                };
                *last = Some(KeptDocument { api_version: kind.api_version.clone(), document: document.clone() });
                document
            }
        };
        let Some(document) = document else { return Ok(SchemaAnswer::Schema(None, None)) };
        // A kept document was requested for another kind, and the API server compared it with that kind's ETag only.
        if known.is_some() && document.etag.as_deref() == known {
            return Ok(SchemaAnswer::Unchanged);
        }
        let schema =
            self.parsed.parse(&document.schemas, &kind.api_version, &kind.kind).map_err(kube::Error::SerdeError)?;
        Ok(SchemaAnswer::Schema(schema, document.etag.clone()))
    }
}
