//! What the host tells only its own pod, which includes `kubectl port-forward`: who may do that is said by the rights on pods. Knows nothing of
//! what is told.

use std::net::SocketAddr;

use axum::{
    extract::{ConnectInfo, Request},
    http::StatusCode,
    middleware::Next,
    response::{IntoResponse, Response},
};

/// Refuses requests from elsewhere.
pub(super) async fn only_from_here(
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
    next: Next,
) -> Response {
    // A socket for both IP versions shows 127.0.0.1 as `::ffff:127.0.0.1`, which is no loopback address before `to_canonical`.
    if peer.ip().to_canonical().is_loopback() {
        return next.run(request).await;
    }
    let why = "this is only for the host's own pod; reach it through `kubectl port-forward`\n";
    (StatusCode::FORBIDDEN, why).into_response()
}
