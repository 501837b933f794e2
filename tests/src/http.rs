//! A minimal HTTP client for the host's own server: one request per connection.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// A response of the host.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status code.
    pub status: u16,
    /// Its first line and headers, in small letters.
    pub head: String,
    /// Its body.
    pub body: String,
}

/// Sends a raw request: request line and headers, each with its line end, and a body.
///
/// # Errors
/// If nothing answers, or not with HTTP.
pub async fn ask(address: &SocketAddr, head: &str, body: &str) -> Result<Answer> {
    let mut stream = TcpStream::connect(address).await?;
    let length = body.len();
    let rest = format!("Host: host\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}");
    stream.write_all(format!("{head}{rest}").as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    let (head, body) = answer.split_once("\r\n\r\n").context("an answer without a body")?;
    let status = head.split(' ').nth(1).context("an answer without a status")?.parse()?;
    Ok(Answer { status, head: head.to_lowercase(), body: body.to_owned() })
}

/// The exposition of `/metrics`, as OpenMetrics.
///
/// # Errors
/// If nothing answers.
pub async fn metrics(address: &SocketAddr) -> Result<String> {
    let head = "GET /metrics HTTP/1.1\r\nAccept: application/openmetrics-text; version=1.0.0\r\n";
    Ok(ask(address, head, "").await?.body)
}
