//! API discovery for one kind: its plural, its scope, whether it has a status subresource, and its schema. Requests only the
//! group and version of the kind. Caches nothing; informers keep the result.

use std::{collections::BTreeMap, sync::Arc};

use http::{Request, header::ACCEPT};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::{Api, Client, api::ApiResource};
use pilothouse_engine::contract::KindRef;
use serde::Deserialize;

use crate::{object::Incoming, schema::Schema};

/// A kind that the API server serves.
#[derive(Clone, Debug, PartialEq)]
pub struct InstalledKind {
    /// Group, version, kind and plural.
    pub resource: ApiResource,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
    /// Whether it has the status subresource.
    pub has_status: bool,
}

/// A kind with its schema, if that could be read.
#[derive(Clone, Debug)]
pub struct KnownKind {
    /// How the API server serves it.
    pub installed: Arc<InstalledKind>,
    /// Its schema.
    pub schema: Option<Schema>,
}

impl InstalledKind {
    /// The API of the kind: in `namespace`, or for the whole cluster if the kind is cluster-scoped.
    pub fn api(&self, client: &Client, namespace: &str) -> Api<Incoming> {
        if self.namespaced {
            Api::namespaced_with(client.clone(), namespace, &self.resource)
        } else {
            Api::all_with(client.clone(), &self.resource)
        }
    }
}

/// Finds a kind; none if it is not installed.
///
/// # Errors
/// The error of the request.
pub async fn find(client: &Client, kind: &KindRef) -> Result<Option<InstalledKind>, kube::Error> {
    let listed = if kind.group().is_empty() {
        client.list_core_api_resources(kind.version()).await
    } else {
        client.list_api_group_resources(&kind.api_version).await
    };
    match listed {
        Ok(list) => Ok(pick(&list, kind)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

fn pick(list: &APIResourceList, kind: &KindRef) -> Option<InstalledKind> {
    let found = list.resources.iter().find(|resource| resource.kind == kind.kind && !resource.name.contains('/'))?;
    let status = format!("{}/status", found.name);
    Some(InstalledKind {
        resource: ApiResource {
            group: kind.group().to_owned(),
            version: kind.version().to_owned(),
            api_version: kind.api_version.clone(),
            kind: kind.kind.clone(),
            plural: found.name.clone(),
        },
        namespaced: found.namespaced,
        has_status: list.resources.iter().any(|resource| resource.name == status),
    })
}

/// Reads the document of the API server's OpenAPI v3 that has a kind's schema; none if there is no document for the group and
/// version. The document of the core kinds has about a megabyte.
///
/// # Errors
/// The error of the request.
pub async fn schema_document(client: &Client, kind: &KindRef) -> Result<Option<String>, kube::Error> {
    openapi(client, &format!("/openapi/v3/{}", document_of(kind))).await
}

/// Reads a kind's schema; none if the API server has no document for it, or the document lacks the kind.
///
/// # Errors
/// The error of the request, or of parsing its response.
pub async fn schema(client: &Client, kind: &KindRef) -> Result<Option<Schema>, kube::Error> {
    let Some(document) = schema_document(client, kind).await? else { return Ok(None) };
    Schema::parse(&document, &kind.api_version, &kind.kind).map_err(kube::Error::SerdeError)
}

/// The hash of each OpenAPI document of the API server. After a change of a hash, a schema may have changed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SchemaHashes(BTreeMap<String, String>);

impl SchemaHashes {
    /// The hash of the document with a kind's schema; none if there is no such document.
    pub fn of(&self, kind: &KindRef) -> Option<&str> {
        self.0.get(&document_of(kind)).map(String::as_str)
    }
}

/// Reads the hashes of all documents, which is one small response. Empty if the API server has no OpenAPI v3.
///
/// # Errors
/// The error of the request, or of parsing its response.
pub async fn schema_hashes(client: &Client) -> Result<SchemaHashes, kube::Error> {
    let Some(list) = openapi(client, "/openapi/v3").await? else { return Ok(SchemaHashes::default()) };
    hashes(&list).map_err(kube::Error::SerdeError)
}

fn hashes(list: &str) -> Result<SchemaHashes, serde_json::Error> {
    #[derive(Deserialize)]
    struct Documents {
        paths: BTreeMap<String, Document>,
    }
    #[derive(Deserialize)]
    struct Document {
        #[serde(rename = "serverRelativeURL")]
        url: String,
    }
    let Documents { paths } = serde_json::from_str(list)?;
    // The URL contains the hash, so the whole URL serves as one.
    Ok(SchemaHashes(paths.into_iter().map(|(path, document)| (path, document.url)).collect()))
}

/// The document that contains a kind's schema.
fn document_of(kind: &KindRef) -> String {
    let root = if kind.group().is_empty() { "api" } else { "apis" };
    format!("{root}/{}", kind.api_version)
}

async fn openapi(client: &Client, path: &str) -> Result<Option<String>, kube::Error> {
    let request = Request::get(path).header(ACCEPT, "application/json").body(Vec::new());
    match client.request_text(request.map_err(kube::Error::HttpError)?).await {
        Ok(text) => Ok(Some(text)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_has_the_hash_of_the_document_of_its_group_and_version() -> Result<(), serde_json::Error> {
        let hashes = hashes(
            r#"{"paths": {
                "api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=A"},
                "apis/apps/v1": {"serverRelativeURL": "/openapi/v3/apis/apps/v1?hash=B"}
            }}"#,
        )?;
        let of = |api_version: &str| hashes.of(&KindRef::new(api_version, "Any")).map(str::to_owned);
        assert_eq!(of("v1").as_deref(), Some("/openapi/v3/api/v1?hash=A"));
        assert_eq!(of("apps/v1").as_deref(), Some("/openapi/v3/apis/apps/v1?hash=B"));
        assert_eq!(of("apps/v2"), None);
        Ok(())
    }
}
