//! Asking whether a part is ready. A part that cannot be asked is not ready; only a broken setup is an error.

use crate::layout::Layout;
use crate::ports::Ports;
use crate::{ADMIN, Part, kubeconfig};
use anyhow::Result;
use kube::Client;
use kube::api::ListParams;
use kube::core::Request;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// How long one answer may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Asks one part again and again over one client.
pub(crate) enum Probe {
    Plain { port: u16, path: &'static str },
    Tls { client: Client, path: &'static str },
}

impl Probe {
    pub(crate) async fn of(part: Part, layout: &Layout, ports: &Ports) -> Result<Self> {
        Ok(match part {
            Part::Etcd => Probe::Plain { port: ports.etcd, path: "/readyz" },
            Part::Kwok => Probe::Plain { port: ports.kwok, path: "/readyz" },
            Part::ApiServer => Self::tls(layout, ports.api_server, "/readyz").await?,
            Part::ControllerManager => Self::tls(layout, ports.controller_manager, "/healthz").await?,
            Part::Scheduler => Self::tls(layout, ports.scheduler, "/readyz").await?,
        })
    }

    async fn tls(layout: &Layout, port: u16, path: &'static str) -> Result<Self> {
        let mut config = kubeconfig::read(&layout.kubeconfig(ADMIN)).await?;
        config.cluster_url = format!("https://127.0.0.1:{port}").parse()?;
        Ok(Probe::Tls { client: Client::try_from(config)?, path })
    }

    pub(crate) async fn is_ready(&self) -> bool {
        let answer = async {
            match self {
                Probe::Plain { port, path } => plain_ok(*port, path).await,
                Probe::Tls { client, path } => get(client, path).await.is_ok(),
            }
        };
        timeout(PATIENCE, answer).await.unwrap_or(false)
    }
}

/// GET `path`, as text.
pub(crate) async fn get(client: &Client, path: &str) -> Result<String> {
    // kube's request type without the `http` crate: a list request is a GET of exactly this path.
    let request = Request::new(path).list(&ListParams::default())?;
    Ok(client.request_text(request).await?)
}

async fn plain_ok(port: u16, path: &str) -> bool {
    let answer = async {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.write_all(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes()).await?;
        let mut status = [0; 12];
        stream.read_exact(&mut status).await?;
        std::io::Result::Ok(status)
    };
    answer.await.is_ok_and(|status| status.ends_with(b" 200"))
}
