//! What a process reads once: the built-in kinds with their schemas and documents. Servers share it.

use std::{
    collections::{BTreeMap, HashMap},
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use serde_json::{Map, Value};

use super::{Kind, Served, built_in, custom};
use crate::api_server::schema::{OpenApi, SchemaError};

/// The documents of the built-in kinds, as a real API server publishes them, without descriptions and without the kinds that nobody
/// here uses. The differential test shows whether they are those of a real one.
const DOCUMENTS: [(&str, &str); 9] = [
    ("api/v1", include_str!("../../../openapi/api-v1.json")),
    ("apis/apps/v1", include_str!("../../../openapi/apps-v1.json")),
    ("apis/batch/v1", include_str!("../../../openapi/batch-v1.json")),
    ("apis/autoscaling/v2", include_str!("../../../openapi/autoscaling-v2.json")),
    ("apis/policy/v1", include_str!("../../../openapi/policy-v1.json")),
    ("apis/networking.k8s.io/v1", include_str!("../../../openapi/networking.k8s.io-v1.json")),
    ("apis/coordination.k8s.io/v1", include_str!("../../../openapi/coordination.k8s.io-v1.json")),
    ("apis/rbac.authorization.k8s.io/v1", include_str!("../../../openapi/rbac.authorization.k8s.io-v1.json")),
    ("apis/apiextensions.k8s.io/v1", include_str!("../../../openapi/apiextensions.k8s.io-v1.json")),
];

/// What the names of the schemas of `metadata` have in common.
const METADATA: &str = ".apis.meta.v1.";

/// The built-in kinds, and what was read of CustomResourceDefinitions so far.
#[derive(Debug)]
pub struct Catalog {
    served: Served,
    documents: BTreeMap<&'static str, (Bytes, String)>,
    /// The schemas that the documents of custom resources refer to.
    metadata: Map<String, Value>,
    /// The kinds of definitions, by the text of what the definition asks for.
    custom: Mutex<HashMap<String, Vec<Arc<Kind>>>>,
}

/// Why there is no catalog.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// A document is not JSON.
    #[error("the document '{0}' is not JSON: {1}")]
    Json(&'static str, #[source] serde_json::Error),
    /// A document is not OpenAPI.
    #[error("the document '{0}' cannot be used: {1}")]
    Schema(&'static str, #[source] SchemaError),
    /// A kind is in no document.
    #[error("the documents have no {0}")]
    Missing(String),
}

impl Catalog {
    /// Reads the documents.
    ///
    /// # Errors
    /// [`CatalogError`] if one is not what it should be.
    pub fn new() -> Result<Self, CatalogError> {
        let (mut served, mut documents, mut metadata) = (Served::default(), BTreeMap::new(), Map::new());
        for (path, text) in DOCUMENTS {
            let document: Value = serde_json::from_str(text).map_err(|error| CatalogError::Json(path, error))?;
            let mut reader = OpenApi::new(&document).map_err(|error| CatalogError::Schema(path, error))?;
            for row in built_in::KINDS.iter().filter(|row| row.document() == path) {
                let schema = reader.kind(row.group, row.version, row.kind);
                let schema = schema.ok_or_else(|| CatalogError::Missing(row.kind.to_owned()))?;
                let kind = Arc::new(row.build(schema));
                served.replace(&kind.resource.clone(), [kind]);
            }
            let schemas = document["components"]["schemas"].as_object().into_iter().flatten();
            metadata.extend(
                schemas
                    .filter(|(name, _)| name.contains(METADATA))
                    .map(|(name, schema)| (name.clone(), schema.clone())),
            );
            documents.insert(path, (Bytes::from_static(text.as_bytes()), hash(text)));
        }
        Ok(Self { served, documents, metadata, custom: Mutex::default() })
    }

    /// The built-in kinds.
    pub fn served(&self) -> &Served {
        &self.served
    }

    /// The documents of the built-in kinds by path, each with its hash.
    pub fn documents(&self) -> &BTreeMap<&'static str, (Bytes, String)> {
        &self.documents
    }

    /// The schemas that the documents of custom resources refer to.
    pub(super) fn metadata(&self) -> &Map<String, Value> {
        &self.metadata
    }

    /// The kinds of a CustomResourceDefinition, one for each version that is served.
    ///
    /// # Errors
    /// An error if this server cannot use its schema.
    pub fn custom(&self, definition: &Value) -> Result<Vec<Arc<Kind>>, SchemaError> {
        let text = definition["spec"].to_string();
        let mut known = self.custom.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(kinds) = known.get(&text) {
            return Ok(kinds.clone());
        }
        let kinds = custom::kinds(definition)?;
        known.insert(text, kinds.clone());
        Ok(kinds)
    }
}

/// A hash of a document, as its URL has it.
pub(super) fn hash(text: &str) -> String {
    use std::hash::{DefaultHasher, Hasher};
    let mut hasher = DefaultHasher::new();
    hasher.write(text.as_bytes());
    format!("{:016X}", hasher.finish())
}
