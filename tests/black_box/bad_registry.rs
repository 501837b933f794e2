//! A registry that answers wrongly, in another way for each repository. Has nothing that loads.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use anyhow::Result;
use axum::{
    Router,
    body::Body,
    extract::{Path, State},
    http::{StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::AbortHandle};

use crate::plugin_objects::sha256;

const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";
const TEXT: &[u8] = b"no component";
/// More than a component may have.
const LARGE: usize = 100 << 20;

/// A running registry. Ends when it is dropped.
pub struct BadRegistry {
    address: String,
    server: AbortHandle,
}

impl BadRegistry {
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?.to_string();
        let router = Router::new()
            .route("/v2/", get(|| async { StatusCode::OK }))
            .route("/v2/{repository}/manifests/{reference}", get(manifest))
            .route("/v2/{repository}/blobs/{digest}", get(blob))
            .with_state(Arc::new(AtomicUsize::new(0)));
        let server = tokio::spawn(async move { axum::serve(listener, router).await }).abort_handle();
        Ok(Self { address, server })
    }

    /// The name of what is in a repository of it.
    pub fn image(&self, repository: &str) -> String {
        format!("{}/{repository}:1", self.address)
    }
}

impl Drop for BadRegistry {
    fn drop(&mut self) {
        self.server.abort();
    }
}

async fn manifest(State(asked): State<Arc<AtomicUsize>>, Path((repository, _)): Path<(String, String)>) -> Response {
    let component = |size: usize| artifact("application/wasm", size);
    match &*repository {
        "no-entry" => StatusCode::UNAUTHORIZED.into_response(),
        "broken" => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        "no-json" => ([(header::CONTENT_TYPE, MANIFEST)], "<html>a proxy's page</html>").into_response(),
        "index" => answer(INDEX, &json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": []})),
        "container" => answer(MANIFEST, &artifact("application/vnd.oci.image.layer.v1.tar+gzip", TEXT.len())),
        "text" | "other-bytes" | "sends-100-mib" => answer(MANIFEST, &component(TEXT.len())),
        "says-100-mib" => answer(MANIFEST, &component(LARGE)),
        "moves" => {
            let mut manifest = component(TEXT.len());
            manifest["annotations"] = json!({"asked": asked.fetch_add(1, Ordering::Relaxed).to_string()});
            answer(MANIFEST, &manifest)
        }
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn blob(Path((repository, _)): Path<(String, String)>) -> Response {
    match &*repository {
        "other-bytes" => b"other bytes!".into_response(),
        "sends-100-mib" => {
            let piece = || Ok::<_, std::io::Error>(bytes::Bytes::from_static(&[0; 1 << 16]));
            Body::from_stream(futures::stream::iter((0..LARGE >> 16).map(move |_| piece()))).into_response()
        }
        _ => TEXT.into_response(),
    }
}

/// A manifest with one layer.
fn artifact(layer: &str, size: usize) -> Value {
    json!({
        "schemaVersion": 2,
        "mediaType": MANIFEST,
        "config": {"mediaType": "application/vnd.wasm.config.v0+json", "digest": sha256(b"{}"), "size": 2},
        "layers": [{"mediaType": layer, "digest": sha256(TEXT), "size": size}],
    })
}

fn answer(media_type: &str, manifest: &Value) -> Response {
    let text = manifest.to_string();
    let digest = sha256(text.as_bytes());
    let headers = [(header::CONTENT_TYPE.as_str(), media_type), ("docker-content-digest", &*digest)];
    (headers, text.clone()).into_response()
}
