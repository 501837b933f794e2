//! The host's HTTP server: `/healthz`, `/readyz`, `/metrics`, `/log-level` and `/last-reconciles`. Responds from memory; makes no request.

mod last_reconciles;
mod log_level;
mod own_pod;

use std::{net::SocketAddr, sync::Arc};

use axum::{
    Router,
    http::{HeaderMap, StatusCode, header},
    routing::get,
};
use tokio::net::TcpListener;

pub use self::log_level::{LogLevel, LogLevelError};
use crate::{host::Host, metrics::Format};

/// Why the server did not start.
#[derive(Debug, thiserror::Error)]
#[error("failed to listen on {address}: {source}\nchoose another address with --health-address or --metrics-address")]
pub struct ListenError {
    /// The address.
    pub address: SocketAddr,
    /// Why.
    pub source: std::io::Error,
}

/// The addresses of the server. A port of 0 in a request lets the system choose one.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    /// Address of `/healthz`, `/readyz`, `/log-level` and `/last-reconciles`; the latter two respond only to the host's own pod.
    pub health: SocketAddr,
    /// Address of `/metrics`.
    pub metrics: SocketAddr,
}

/// Serves health and metrics, on one address or two, until the runtime ends. Returns the addresses in use.
///
/// # Errors
/// [`ListenError`] if an address cannot be used.
pub async fn serve(host: &Arc<Host>, level: Arc<dyn LogLevel>, requested: Addresses) -> Result<Addresses, ListenError> {
    let Addresses { health, metrics } = requested;
    let health_routes = health_routes(host).merge(log_level::routes(level)).merge(last_reconciles::routes(host));
    if health == metrics {
        let both = listen(health, health_routes.merge(metrics_routes(host))).await?;
        return Ok(Addresses { health: both, metrics: both });
    }
    let health = listen(health, health_routes).await?;
    Ok(Addresses { health, metrics: listen(metrics, metrics_routes(host)).await? })
}

async fn listen(address: SocketAddr, routes: Router) -> Result<SocketAddr, ListenError> {
    let fail = |source| ListenError { address, source };
    let listener = TcpListener::bind(address).await.map_err(fail)?;
    let bound = listener.local_addr().map_err(fail)?;
    let routes = routes.into_make_service_with_connect_info::<SocketAddr>();
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, routes).await {
            tracing::error!(%bound, "the HTTP server ended: {error}");
        }
    });
    Ok(bound)
}

fn health_routes(host: &Arc<Host>) -> Router {
    let host = host.clone();
    let ready = move || async move {
        let reasons = host.not_ready();
        if reasons.is_empty() {
            (StatusCode::OK, "ok\n".to_owned())
        } else {
            (StatusCode::SERVICE_UNAVAILABLE, format!("not ready:\n- {}\n", reasons.join("\n- ")))
        }
    };
    // `/healthz` does not depend on the API server: while that is down, a restart of the host would not help.
    Router::new().route("/healthz", get(|| async { "ok\n" })).route("/readyz", get(ready))
}

fn metrics_routes(host: &Arc<Host>) -> Router {
    let metrics = host.metrics().clone();
    let exposition = move |headers: HeaderMap| async move {
        let accept = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
        let format = Format::accepted(accept);
        ([(header::CONTENT_TYPE, format.content_type())], metrics.exposition(format))
    };
    Router::new().route("/metrics", get(exposition))
}
