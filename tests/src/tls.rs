//! Certificates of their own, and a listener with one, for what the API server calls.

use std::{io, net::SocketAddr, path::Path, sync::Arc};

use anyhow::{Context, Result};
use axum::serve::Listener;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::{
    TlsAcceptor,
    rustls::{ServerConfig, pki_types::PrivatePkcs8KeyDer},
    server::TlsStream,
};

/// The names in the certificate.
const NAMES: [&str; 2] = ["localhost", "127.0.0.1"];

/// Writes a certificate and its key as programs in Go look for them, and returns the certificate.
///
/// # Errors
/// If the files cannot be written.
pub fn self_signed(folder: &Path) -> Result<String> {
    let certified = rcgen::generate_simple_self_signed(NAMES.map(str::to_owned))?;
    std::fs::write(folder.join("tls.crt"), certified.cert.pem())?;
    std::fs::write(folder.join("tls.key"), certified.signing_key.serialize_pem())?;
    Ok(certified.cert.pem())
}

/// Accepts connections on a port of its own.
pub struct TlsListener {
    tcp: TcpListener,
    acceptor: TlsAcceptor,
    certificate: String,
}

impl TlsListener {
    /// Begins to listen.
    ///
    /// # Errors
    /// If there is no port or no certificate.
    pub async fn bind() -> Result<Self> {
        let certified = rcgen::generate_simple_self_signed(NAMES.map(str::to_owned))?;
        let key = PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der());
        let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(vec![certified.cert.der().clone()], key.into())?;
        let tcp = TcpListener::bind("127.0.0.1:0").await.context("no port to listen on")?;
        Ok(Self { tcp, acceptor: TlsAcceptor::from(Arc::new(config)), certificate: certified.cert.pem() })
    }

    /// The port.
    ///
    /// # Errors
    /// If it is not known.
    pub fn port(&self) -> Result<u16> {
        Ok(self.tcp.local_addr()?.port())
    }

    /// The certificate, which is its own authority.
    pub fn certificate(&self) -> &str {
        &self.certificate
    }
}

impl Listener for TlsListener {
    type Io = TlsStream<TcpStream>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        loop {
            let Ok((stream, address)) = self.tcp.accept().await else { continue };
            // A connection that speaks no TLS is nobody's loss.
            if let Ok(stream) = self.acceptor.accept(stream).await {
                return (stream, address);
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.tcp.local_addr()
    }
}
