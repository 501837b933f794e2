//! A proxy between one host and the API server, for fault injection: it holds writes, delays, freezes and cuts watches, answers
//! in the API server's place, and moves its clock. Everything else passes unchanged. The proxy never looks into an object and never repeats a
//! request.

mod answer;
mod dates;
mod faults;
mod request;
mod watches;
mod writes;

use std::{
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
};

use anyhow::{Context, Result};
use axum::{
    Router,
    body::{Body, to_bytes},
    extract::State,
    http::{Request, StatusCode, header},
    response::Response,
};
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};
use serde_json::json;
use tempfile::NamedTempFile;
use tokio::{net::TcpListener, task::AbortHandle};

use self::request::Target;
pub use self::{
    dates::Dates,
    faults::Faults,
    watches::{Expiry, Watches},
    writes::{Moment, Writes},
};

/// The limit for request bodies. The API server's own limit is lower.
const LARGEST: usize = 8 << 20;

/// The connection to the API server, which the proxies of one test share.
#[derive(Clone)]
pub struct Upstream(Client);

/// A running proxy. Stops when it is dropped.
pub struct Proxy {
    kubeconfig: NamedTempFile,
    passage: Arc<Passage>,
    server: AbortHandle,
}

/// The state that all requests share.
struct Passage {
    upstream: Upstream,
    writes: Writes,
    watches: Watches,
    faults: Arc<Faults>,
    dates: Dates,
}

impl Upstream {
    /// The API server and the user of a kubeconfig. Belongs to the tokio runtime in which it is created.
    ///
    /// # Errors
    /// If the kubeconfig is not usable.
    pub async fn of(kubeconfig: &Path) -> Result<Self> {
        let file = Kubeconfig::read_from(kubeconfig)?;
        let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await?;
        // Retries are up to the host.
        config.default_retry = false;
        Ok(Self(Client::try_from(config)?))
    }

    async fn send(&self, request: Request<Vec<u8>>) -> Result<Response> {
        let answer = self.0.send(request.map(Into::into)).await?;
        Ok(answer.map(Body::new))
    }
}

impl Proxy {
    /// Starts a proxy on a free port of the loopback interface. `namespace` is that of its kubeconfig's context.
    ///
    /// # Errors
    /// If it cannot listen.
    pub async fn start(upstream: Upstream, namespace: &str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await.context("failed to listen on the loopback interface")?;
        let kubeconfig = kubeconfig(&format!("http://{}", listener.local_addr()?), namespace)?;
        let (writes, watches, faults, dates) = Default::default();
        let passage = Arc::new(Passage { upstream, writes, watches, faults, dates });
        let router = Router::new().fallback(handle).with_state(passage.clone());
        let server = tokio::spawn(async { axum::serve(NoDelay(listener), router).await }).abort_handle();
        Ok(Self { kubeconfig, passage, server })
    }

    /// The kubeconfig for the proxy.
    pub fn kubeconfig(&self) -> PathBuf {
        self.kubeconfig.path().to_owned()
    }

    /// The host's writes.
    pub fn writes(&self) -> &Writes {
        &self.passage.writes
    }

    /// The host's watches.
    pub fn watches(&self) -> &Watches {
        &self.passage.watches
    }

    /// The faults to inject.
    pub fn faults(&self) -> &Faults {
        &self.passage.faults
    }

    /// The dates of the API server's answers.
    pub fn dates(&self) -> &Dates {
        &self.passage.dates
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.server.abort();
    }
}

/// A listener for connections without Nagle's algorithm, which would delay watch events.
struct NoDelay(TcpListener);

impl axum::serve::Listener for NoDelay {
    type Io = tokio::net::TcpStream;
    type Addr = std::net::SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (stream, address) = axum::serve::Listener::accept(&mut self.0).await;
        // If that fails, answers are only a little later.
        drop(stream.set_nodelay(true));
        (stream, address)
    }

    fn local_addr(&self) -> std::io::Result<Self::Addr> {
        self.0.local_addr()
    }
}

async fn handle(State(passage): State<Arc<Passage>>, request: Request<Body>) -> Response {
    let target = Target::of(&request);
    match passage.pass(&target, request).await {
        Ok(answer) => passage.dates.moved(answer),
        Err(error) => answer::failure(StatusCode::BAD_GATEWAY, &format!("{error:#}")),
    }
}

impl Passage {
    async fn pass(&self, target: &Target, request: Request<Body>) -> Result<Response> {
        let (mut parts, body) = request.into_parts();
        // The connection to the API server has a `Host` header of its own.
        parts.headers.remove(header::HOST);
        let body = to_bytes(body, LARGEST).await?.to_vec();
        let (upstream, request) = (self.upstream.clone(), Request::from_parts(parts, body));
        let (faults, aim) = (self.faults.clone(), target.clone());
        let forwarded = async move {
            match faults.pass(&aim).await {
                Ok(()) => upstream.send(request).await,
                Err(status) => Ok(answer::failure(status, "the test lets this request fail")),
            }
        };
        if target.is_watch() {
            self.watches.pass(target, forwarded).await
        } else if target.is_counted() {
            self.writes.pass(target, forwarded).await
        } else {
            forwarded.await
        }
    }
}

fn kubeconfig(server: &str, namespace: &str) -> Result<NamedTempFile> {
    let config = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "proxy", "cluster": {"server": server}}],
        "users": [{"name": "nobody", "user": {}}],
        "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "nobody", "namespace": namespace}}],
        "current-context": "proxy",
    });
    let mut file = NamedTempFile::new()?;
    file.write_all(config.to_string().as_bytes())?;
    Ok(file)
}
