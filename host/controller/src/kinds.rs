//! API discovery for one kind: its plural, its scope, whether it has a status subresource, and its schema. Requests only the
//! group and version of the kind. Caches nothing; informers keep the result.

use std::sync::Arc;

use http::{
    HeaderValue, Request, StatusCode,
    header::{ACCEPT, CONTENT_LENGTH, ETAG, IF_NONE_MATCH},
};
use http_body_util::BodyExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResourceList;
use kube::{Api, Client, api::ApiResource, client::Body, core::Status};
use pilothouse_engine::contract::KindRef;

use crate::{
    object::Incoming,
    schema::{Document, Schema},
};

/// The most memory that is reserved for a document before it is there, whatever length is announced.
const MAX_RESERVED: usize = 4 << 20;

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
    /// Whether objects of both are found under the same paths.
    pub fn is_read_like(&self, other: &Self) -> bool {
        self.resource == other.resource && self.namespaced == other.namespaced
    }

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
    Ok(list(client, kind).await?.and_then(|list| pick(&list, kind)))
}

/// Lists the resources of a kind's group and version; none if the API server does not serve that.
///
/// # Errors
/// The error of the request.
pub async fn list(client: &Client, kind: &KindRef) -> Result<Option<APIResourceList>, kube::Error> {
    let listed = if kind.group().is_empty() {
        client.list_core_api_resources(kind.version()).await
    } else {
        client.list_api_group_resources(&kind.api_version).await
    };
    match listed {
        Ok(list) => Ok(Some(list)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error),
    }
}

/// Finds a kind in the list of its group and version.
pub fn pick(list: &APIResourceList, kind: &KindRef) -> Option<InstalledKind> {
    // A name with a slash is a subresource, which may be listed with the same kind: `deployments/status` is a Deployment, too.
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

/// A document of the API server's OpenAPI v3.
#[derive(Clone, Debug)]
pub struct SchemaDocument {
    /// The schemas in it.
    pub schemas: Document,
    /// Identifies this state of the document; none if the API server does not send one.
    pub etag: Option<String>,
}

/// The answer to a request for a document.
#[derive(Clone, Debug)]
pub enum DocumentAnswer {
    /// It is still the one with the known ETag.
    Unchanged,
    /// There is no document for the group and version.
    Missing,
    /// The document.
    Document(SchemaDocument),
}

/// Reads the document that has a kind's schema, unless it still has the ETag `known`. The document of the core kinds has about a
/// megabyte.
///
/// # Errors
/// The error of the request.
pub async fn schema_document(
    client: &Client,
    kind: &KindRef,
    known: Option<&str>,
) -> Result<DocumentAnswer, kube::Error> {
    let request = Request::get(format!("/openapi/v3/{}", document_of(kind))).header(ACCEPT, "application/json");
    let request = match known {
        Some(etag) => request.header(IF_NONE_MATCH, etag),
        None => request,
    };
    // Not `Client::request`, because a 304 and the ETag are part of the answer.
    let response = client.send(request.body(Body::empty()).map_err(kube::Error::HttpError)?).await?;
    match response.status() {
        StatusCode::NOT_MODIFIED => return Ok(DocumentAnswer::Unchanged),
        StatusCode::NOT_FOUND => return Ok(DocumentAnswer::Missing),
        _ => {}
    }
    let (parts, body) = response.into_parts();
    let header = |name| parts.headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
    let length = header(CONTENT_LENGTH).and_then(|length| length.parse().ok()).unwrap_or_default();
    let body = read_body(body, length).await?;
    if !parts.status.is_success() {
        return Err(refusal(parts.status, &body));
    }
    let etag = header(ETAG).map(str::to_owned);
    let text = String::from_utf8(body).map_err(kube::Error::FromUtf8)?;
    Ok(DocumentAnswer::Document(SchemaDocument { schemas: Document::new(text), etag }))
}

/// The error that a refused request means: the `Status` in its body, if it has one. A proxy may answer with anything else.
fn refusal(code: StatusCode, body: &[u8]) -> kube::Error {
    let without_status =
        || Status::failure("the API server does not give its OpenAPI document", "").with_code(code.as_u16());
    kube::Error::Api(Box::new(serde_json::from_slice(body).unwrap_or_else(|_| without_status())))
}

/// Reads a body of about this many bytes. Frame by frame, because to collect it first would take its memory twice.
async fn read_body(mut body: Body, length: usize) -> Result<Vec<u8>, kube::Error> {
    let mut bytes = Vec::with_capacity(length.min(MAX_RESERVED));
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            bytes.extend_from_slice(&data);
        }
    }
    Ok(bytes)
}

/// Reads a kind's schema; none if the API server has no document for it, or the document lacks the kind.
///
/// # Errors
/// The error of the request, or of parsing its response.
pub async fn schema(client: &Client, kind: &KindRef) -> Result<Option<Schema>, kube::Error> {
    match schema_document(client, kind, None).await? {
        DocumentAnswer::Document(document) => {
            document.schemas.schema(&kind.api_version, &kind.kind).map_err(kube::Error::SerdeError)
        }
        DocumentAnswer::Unchanged | DocumentAnswer::Missing => Ok(None),
    }
}

/// The document that contains a kind's schema.
fn document_of(kind: &KindRef) -> String {
    let root = if kind.group().is_empty() { "api" } else { "apis" };
    format!("{root}/{}", kind.api_version)
}
