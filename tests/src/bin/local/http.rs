//! The host's own HTTP, asked without a library: one request, one answer, on the loopback interface.

use std::{net::SocketAddr, time::Duration};

use anyhow::{Context, Result};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// The time limit for an answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The status and the body of a page.
///
/// # Errors
/// If nothing answers.
pub async fn get(address: SocketAddr, path: &str) -> Result<(u16, String)> {
    timeout(PATIENCE, ask(address, path)).await.with_context(|| format!("http://{address}{path} does not answer"))?
}

async fn ask(address: SocketAddr, path: &str) -> Result<(u16, String)> {
    let mut stream = TcpStream::connect(address).await.with_context(|| format!("nothing listens at {address}"))?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer without a body")?;
    let status = head.split(' ').nth(1).context("an answer without a status")?.parse()?;
    Ok((status, body.to_owned()))
}
