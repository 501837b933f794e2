//! `/last-reconciles/GROUP/KIND/NAMESPACE/NAME`: what the last reconciles of an object did, one for each plugin that works on it, as JSON. A
//! minus stands for the group of the core kinds, and for the namespace of what is in none. For the host's own pod only.

use std::sync::Arc;

use axum::{
    Router,
    extract::{Path, State},
    http::{StatusCode, header},
    middleware,
    response::IntoResponse,
    routing::get,
};

use super::own_pod::only_from_here;
use crate::{host::Host, object::ObjectRef};

/// The routes of the last reconciles.
pub(super) fn routes(host: &Arc<Host>) -> Router {
    Router::new()
        .route("/last-reconciles/{group}/{kind}/{namespace}/{name}", get(show))
        .layer(middleware::from_fn(only_from_here))
        .with_state(host.clone())
}

async fn show(
    State(host): State<Arc<Host>>,
    Path((group, kind, namespace, name)): Path<(String, String, String, String)>,
) -> impl IntoResponse {
    let text = |text: String| if text == "-" { String::new() } else { text };
    let found = host.last_reconciles(&text(group), &kind, &ObjectRef::new(&text(namespace), &name));
    match serde_json::to_string(&found) {
        Ok(json) => (StatusCode::OK, [(header::CONTENT_TYPE, "application/json")], json),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, [(header::CONTENT_TYPE, "text/plain")], format!("{error}\n")),
    }
}
