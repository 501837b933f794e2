//! Reads schemas for all watches, one after another: kinds of one group and version share a document, which can be a megabyte, so
//! it is kept as long as somebody waits for a schema, and no longer.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use kube::Client;
use pilothouse_engine::contract::KindRef;
use tokio::sync::Mutex;

use crate::{
    kinds::{self, SchemaHashes},
    schema::Schema,
};

/// Reads schemas.
pub(super) struct SchemaReader {
    client: Client,
    /// How many watches wait for a schema, or read one.
    waiting: AtomicUsize,
    /// The document that was read last.
    last: Mutex<Option<Document>>,
}

/// A document of the API server's OpenAPI.
struct Document {
    api_version: String,
    text: Option<Arc<str>>,
}

impl SchemaReader {
    /// Reads with this client.
    pub(super) fn new(client: Client) -> Self {
        Self { client, waiting: AtomicUsize::new(0), last: Mutex::default() }
    }

    /// Reads the schema of a kind; none where the API server has none.
    ///
    /// # Errors
    /// Whatever the request fails with, or that its answer is no OpenAPI.
    pub(super) async fn read(&self, kind: &KindRef) -> Result<Option<Schema>, kube::Error> {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        let mut last = self.last.lock().await;
        let result = self.read_with(&mut last, kind).await;
        if self.waiting.fetch_sub(1, Ordering::AcqRel) == 1 {
            *last = None;
        }
        result
    }

    async fn read_with(&self, last: &mut Option<Document>, kind: &KindRef) -> Result<Option<Schema>, kube::Error> {
        let known = last.as_ref().filter(|document| document.api_version == kind.api_version);
        let text = match known {
            Some(document) => document.text.clone(),
            None => {
                let text = kinds::schema_document(&self.client, kind).await?.map(Arc::from);
                *last = Some(Document { api_version: kind.api_version.clone(), text: text.clone() });
                text
            }
        };
        let parse = |text: Arc<str>| Schema::parse(&text, &kind.api_version, &kind.kind);
        text.map(parse).transpose().map(Option::flatten).map_err(kube::Error::SerdeError)
    }

    /// The hashes of all documents as they are now.
    ///
    /// # Errors
    /// Whatever the request fails with.
    pub(super) async fn hashes(&self) -> Result<SchemaHashes, kube::Error> {
        kinds::schema_hashes(&self.client).await
    }
}
