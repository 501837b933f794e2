//! A registry that answers wrongly, in another way for each repository. Has nothing that loads.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::Result;
use axum::{
    Router,
    body::Body,
    extract::{Path, RawQuery, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::AbortHandle};

use crate::registry::digest;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// What one has to show who was told to get a token.
const TOKEN: &str = "shown";
const TEXT: &[u8] = b"no component";
/// More than a component may have.
const LARGE: usize = 100 << 20;

/// A running registry. Ends when it is dropped.
pub(super) struct BadRegistry {
    address: String,
    server: AbortHandle,
}

struct Served {
    address: String,
    /// How often a manifest was asked for that is another one each time.
    asked: AtomicUsize,
}

impl BadRegistry {
    pub(super) async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let router = Router::new()
            .route("/v2/", get(|| async { StatusCode::OK }))
            .route("/v2/{repository}/manifests/{reference}", get(manifest))
            .route("/v2/{repository}/blobs/{digest}", get(blob))
            .route("/token/{repository}", get(token))
            .with_state(Arc::new(Served { address: address.clone(), asked: AtomicUsize::new(0) }));
        let server = tokio::spawn(async move { axum::serve(listener, router).await }).abort_handle();
        Ok(Self { address, server })
    }

    /// The name of what is in a repository of it.
    pub(super) fn image(&self, repository: &str) -> String {
        format!("{}/{repository}:1", self.address)
    }
}

impl Drop for BadRegistry {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn manifest(
    State(served): State<Arc<Served>>,
    Path((repository, _)): Path<(String, String)>,
    headers: HeaderMap,
) -> Response {
    if repository.ends_with("-token") && !has_token(&headers) {
        let realm = format!("Bearer realm=\"http://{}/token/{repository}\",service=\"all\"", served.address);
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, realm)]).into_response();
    }
    let component = |size: usize| artifact("application/wasm", size);
    match &*repository {
        "no-entry" => StatusCode::UNAUTHORIZED.into_response(),
        "broken" => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        "endless" => endless(StatusCode::OK),
        "endless-error" => endless(StatusCode::INTERNAL_SERVER_ERROR),
        "no-json" => ([(header::CONTENT_TYPE, MANIFEST)], "<html>a proxy's page</html>").into_response(),
        "index" => answer(INDEX, &json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": []})),
        "container" => answer(MANIFEST, &artifact("application/vnd.oci.image.layer.v1.tar+gzip", TEXT.len())),
        "text" | "wants-token" | "other-bytes" | "sends-100-mib" => answer(MANIFEST, &component(TEXT.len())),
        "says-100-mib" => answer(MANIFEST, &component(LARGE)),
        "moves" => {
            let mut manifest = component(TEXT.len());
            manifest["annotations"] = json!({"asked": served.asked.fetch_add(1, Ordering::Relaxed).to_string()});
            answer(MANIFEST, &manifest)
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

/// For whoever asks for what the challenge says.
async fn token(Path(repository): Path<String>, RawQuery(query): RawQuery) -> Response {
    let asked = query.unwrap_or_default();
    match &*repository {
        "endless-token" => endless(StatusCode::OK),
        _ if asked == "service=all&scope=repository%3Awants-token%3Apull" => {
            json!({"token": TOKEN}).to_string().into_response()
        }
        _ => (StatusCode::BAD_REQUEST, asked).into_response(),
    }
}

fn has_token(headers: &HeaderMap) -> bool {
    headers.get(header::AUTHORIZATION).is_some_and(|value| value.as_bytes() == format!("Bearer {TOKEN}").as_bytes())
}

async fn blob(Path((repository, _)): Path<(String, String)>, headers: HeaderMap) -> Response {
    match &*repository {
        "wants-token" if !has_token(&headers) => StatusCode::UNAUTHORIZED.into_response(),
        "other-bytes" => b"other bytes!".into_response(),
        "sends-100-mib" => pieces(LARGE >> 16).into_response(),
        _ => TEXT.into_response(),
    }
}

/// An answer that goes on for as long as somebody reads.
fn endless(status: StatusCode) -> Response {
    (status, pieces(usize::MAX)).into_response()
}

/// So many pieces of 64 KiB.
fn pieces(number: usize) -> Body {
    let piece = |_| Ok::<_, std::io::Error>(bytes::Bytes::from_static(&[b' '; 1 << 16]));
    Body::from_stream(futures::stream::iter((0..number).map(piece)))
}

/// A manifest with one layer.
fn artifact(layer: &str, size: usize) -> Value {
    json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": "application/vnd.wasm.config.v0+json", "digest": digest(b"{}"), "size": 2},
        "layers": [{"mediaType": layer, "digest": digest(TEXT), "size": size}],
    })
}

fn answer(media_type: &str, manifest: &Value) -> Response {
    let text = manifest.to_string();
    let digest = digest(text.as_bytes());
    let headers = [(header::CONTENT_TYPE.as_str(), media_type), ("docker-content-digest", &*digest)];
    (headers, text.clone()).into_response()
}
