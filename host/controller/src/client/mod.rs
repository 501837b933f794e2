//! The clients for the API server: [`client()`] for watches, reads and writes, and [`lease_client`] for the Lease. [`over`] makes one
//! over another connection, and [`fenced`] one whose writes have a fence of their own.
//!
//! # Flow
//!
//! A request passes these layers, from the outside in: the token, the limit of writes in flight, the [`Fence`], the request
//! metrics, the timeout, the clock, and the choice of a connection.
//!
//! # Guarantees
//!
//! - A write is sent only while the fence is open. The fence is checked last, after every wait.
//! - A request fails if no response arrives in time. Only the events of a watch may stay out; its watcher notices that itself.
//! - A dead connection is noticed by HTTP/2 pings.
//! - A request that fails with 401 is sent once more if the token file has a new token by then.
//!
//! # Caveats
//!
//! - Nothing else is retried here: the queue retries whole reconciles.
//! - The server may have carried out a write whose response was lost.

mod apply_patch;
mod connections;
mod dry_run;
pub mod fence;
mod in_flight;
mod request;
mod server_date;
mod timeout;
mod token;

use std::{path::Path, time::Duration};

use axum::body::{Bytes, HttpBody};
use http::{Request, Response};
use http_body_util::Either;
use hyper_rustls::{FixedServerNameResolver, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::{client::legacy::connect::HttpConnector, rt::TokioExecutor};
use kube::{
    Client, Config,
    client::{Body, ConfigExt},
    config::KubeConfigOptions,
};
use tower::{BoxError, Service, ServiceBuilder, service_fn};
use tower_http::timeout::TimeoutBody;

pub(crate) use self::apply_patch::apply_patch;
use self::{connections::Connections, in_flight::InFlightLimit, timeout::RequestTimeout, token::TokenFile};
pub use self::{dry_run::dry_running, token::TokenError};
use crate::{client::fence::Fence, clock::Clock, errors::chain, metrics::RequestMetrics};

/// A silent connection is pinged after this time, and dropped if no answer arrives within [`PING_TIMEOUT`].
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The timeout of a request if the configuration has no `read_timeout`: the API server's own limit.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// The HTTP/2 receive windows of a stream and of the connection: large enough that a list does not wait for window updates.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;

/// Why there is no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No kubeconfig and not in a cluster, or a file that cannot be read.
    #[error(
        "no usable cluster configuration: {0}\nset KUBECONFIG or --kubeconfig to a readable kubeconfig, or run in a \
         pod with a service account"
    )]
    Config(String),
    /// The certificates or credentials of the configuration are not usable.
    #[error("the cluster configuration cannot be used: {0}")]
    Setup(#[source] kube::Error),
    /// The token file is not usable.
    #[error("the cluster configuration cannot be used: {0}")]
    Token(#[from] TokenError),
}

/// Finds the cluster: in the given kubeconfig, else in `KUBECONFIG`, `~/.kube/config` or the pod's service account.
///
/// # Errors
/// [`ClientError::Config`], which names what was tried and what to set.
pub async fn config(kubeconfig: Option<&std::path::Path>, context: Option<&str>) -> Result<Config, ClientError> {
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..Default::default() };
    let problem = |path: &std::path::Path, error: &dyn std::fmt::Display| {
        ClientError::Config(format!("kubeconfig '{}': {error}", path.display()))
    };
    match kubeconfig {
        Some(path) => {
            let file = kube::config::Kubeconfig::read_from(path).map_err(|error| problem(path, &chain(&error)))?;
            Config::from_custom_kubeconfig(file, &options).await.map_err(|error| problem(path, &chain(&error)))
        }
        // `infer` has no parameter for a context. A context is an entry of a kubeconfig, so a pod's service account is no
        // alternative.
        None if context.is_some() => {
            Config::from_kubeconfig(&options).await.map_err(|error| ClientError::Config(chain(&error)))
        }
        None => Config::infer().await.map_err(|error| ClientError::Config(chain(&error))),
    }
}

/// The client for watches, reads and writes. A write fails while the fence is closed. It connects at the first request, so an API
/// server that is down is no error here.
///
/// # Errors
/// [`ClientError::Setup`] if certificates or credentials are not usable.
pub fn client(config: &Config, requests: RequestMetrics, fence: Fence, clock: Clock) -> Result<Client, ClientError> {
    let connector = connector(config, Versions::All)?;
    let open = move || {
        hyper_util::client::legacy::Builder::new(TokioExecutor::new())
            .timer(hyper_util::rt::TokioTimer::new())
            .http2_keep_alive_interval(PING_INTERVAL)
            .http2_keep_alive_timeout(PING_TIMEOUT)
            .http2_keep_alive_while_idle(true)
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .build(connector.clone())
    };
    assemble(config, limits(config, requests, fence, clock), Connections::new(open))
}

/// A client for the Lease only, without a fence. It speaks HTTP/1.1: a cancelled request closes its connection, so the next one
/// waits neither for it nor for any watch.
///
/// # Errors
/// As for [`client`].
pub fn lease_client(config: &Config, requests: RequestMetrics, clock: Clock) -> Result<Client, ClientError> {
    let connector = connector(config, Versions::Http1)?;
    let open = move || {
        hyper_util::client::legacy::Builder::new(TokioExecutor::new())
            .timer(hyper_util::rt::TokioTimer::new())
            .build(connector.clone())
    };
    assemble(config, limits(config, requests, Fence::open(), clock), Connections::new(open))
}

fn limits(config: &Config, requests: RequestMetrics, fence: Fence, clock: Clock) -> Limits {
    Limits { requests, fence, clock, timeout: config.read_timeout.unwrap_or(REQUEST_TIMEOUT) }
}

fn assemble(config: &Config, limits: Limits, connections: Connections) -> Result<Client, ClientError> {
    // kube's own layer reads a token file once a minute only. After a rotation, requests would fail for up to a minute.
    let token = token_file(config).map(TokenFile::open).transpose()?;
    let other = token.is_none().then(|| config.auth_layer()).transpose().map_err(ClientError::Setup)?;
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(token)
        .option_layer(other.flatten())
        .layer(config.extra_headers_layer().map_err(ClientError::Setup)?)
        .service(limited(connections, limits));
    Ok(Client::new(service, config.default_namespace.clone()))
}

/// A client whose writes pass only while this fence is open, too. The client has to be one of [`client()`] or [`over`], or around one:
/// the fence is checked there, after every wait.
pub fn fenced(client: &Client, fence: &Fence) -> Client {
    let (inner, fence) = (client.clone(), fence.clone());
    let service = service_fn(move |mut request: Request<Body>| {
        request.extensions_mut().insert(fence.clone());
        let inner = inner.clone();
        async move { inner.send(request).await }
    });
    Client::new(service, client.default_namespace())
}

/// What limits the requests of a client.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Count the requests.
    pub requests: RequestMetrics,
    /// Decides whether a write may be sent.
    pub fence: Fence,
    /// Learns the API server's time.
    pub clock: Clock,
    /// How long the response of a request that is no watch may take.
    pub timeout: Duration,
}

/// A client over any connection, with the limits of [`client()`]. It adds no credentials and leaves the URI as it is.
pub fn over<S, B>(connection: S, limits: Limits, default_namespace: &str) -> Client
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + Send,
    B: HttpBody<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    Client::new(limited(connection, limits), default_namespace)
}

/// What a limited connection answers: the body of a watch as it is, and any other with a timeout.
type Limited<B> = Response<Either<B, TimeoutBody<B>>>;

/// A connection with the layers that every client has.
fn limited<S, B>(
    connection: S,
    limits: Limits,
) -> impl Service<
    Request<Body>,
    Response = Limited<B>,
    Error = BoxError,
    Future = impl Future<Output = Result<Limited<B>, BoxError>> + Send,
> + Clone
+ Send
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError> + Send,
    B: Send + 'static,
{
    let Limits { requests, fence, clock, timeout } = limits;
    ServiceBuilder::new()
        // The fence comes after the limit: this host may have lost the Lease while the write waited there.
        .layer(InFlightLimit::new())
        .filter(move |request: Request<Body>| fence.admit(request))
        // Below the fence: a refused write is not sent, so it is not counted.
        .layer(requests)
        .layer(RequestTimeout::new(timeout))
        .map_future(move |answer| server_date::told(clock.clone(), answer))
        .service(connection)
}

/// The token file, unless the configuration has credentials that take precedence over it.
fn token_file(config: &Config) -> Option<&Path> {
    let auth = &config.auth_info;
    let other =
        auth.auth_provider.is_some() || auth.token.is_some() || (auth.username.is_some() && auth.password.is_some());
    auth.token_file.as_deref().filter(|_| !other).map(Path::new)
}

/// The HTTP versions to offer.
enum Versions {
    /// HTTP/2 and HTTP/1.1, so that a proxy without HTTP/2 works too.
    All,
    /// Only HTTP/1.1.
    Http1,
}

/// Connects to the server. kube's own connector offers only HTTP/1.1 and delays small packets (Nagle's algorithm).
fn connector(config: &Config, versions: Versions) -> Result<HttpsConnector<HttpConnector>, ClientError> {
    let mut http = HttpConnector::new();
    http.set_nodelay(true);
    // The TLS connector passes on `https` URIs, which this connector refuses by default.
    http.enforce_http(false);
    http.set_connect_timeout(Some(CONNECT_TIMEOUT));
    let tls = config.rustls_client_config().map_err(ClientError::Setup)?;
    let mut builder = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into().map_err(|error| {
            ClientError::Config(format!("the tls-server-name '{name}' is not a host name: {error}"))
        })?;
        builder = builder.with_server_name_resolver(FixedServerNameResolver::new(name));
    }
    Ok(match versions {
        Versions::All => builder.enable_all_versions().wrap_connector(http),
        Versions::Http1 => builder.enable_http1().wrap_connector(http),
    })
}
