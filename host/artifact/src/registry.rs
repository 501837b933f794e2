//! Requests to registries: what a tag stands for, pull, push, and the signatures beside an artifact. Each ends in time.

use std::{
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use oci_client::{
    Client, RegistryOperation,
    client::{Certificate, CertificateEncoding, ClientConfig, ClientProtocol},
    manifest::{OciImageManifest, OciManifest},
};
use tokio::io::AsyncWrite;

use crate::{
    Credentials, Image, RegistryError,
    layout::{self, Component},
    signatures::Evidence,
};

/// How long the answer to a small request may take.
const ANSWER: Duration = Duration::from_secs(15);
/// How long a component may take. 64 MiB over 10 Mbit/s take a minute.
const TRANSFER: Duration = Duration::from_secs(120);
/// The most bytes of a signature with all that belongs to it.
const MAX_BUNDLE_BYTES: u64 = 1 << 20;
/// The most signatures of an artifact that are looked at.
const MAX_BUNDLES: usize = 32;

/// How registries are reached.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistrySettings {
    /// Without TLS. For registries on this machine or in tests.
    pub plain_http: bool,
    /// Certificate authorities to trust beside those of the system, as PEM.
    pub certificate_authorities: Option<String>,
}

/// A client of one registry with one set of credentials.
pub struct Registry {
    client: Client,
    credentials: Credentials,
}

/// A component from a registry.
pub struct Pulled {
    /// The component.
    pub bytes: Vec<u8>,
    /// The digest of its manifest, `sha256:` and hexadecimal digits: what signatures are about.
    pub manifest_digest: String,
}

impl Registry {
    /// A client.
    ///
    /// # Errors
    /// The certificate authorities are not PEM.
    pub fn new(settings: &RegistrySettings, credentials: Credentials) -> Result<Self, RegistryError> {
        install_crypto_provider();
        let authority =
            |pem: &String| Certificate { encoding: CertificateEncoding::Pem, data: pem.clone().into_bytes() };
        let config = ClientConfig {
            protocol: if settings.plain_http { ClientProtocol::Http } else { ClientProtocol::Https },
            extra_root_certificates: settings.certificate_authorities.iter().map(authority).collect(),
            // An index names images of platforms. A component has none.
            platform_resolver: None,
            read_timeout: Some(ANSWER),
            connect_timeout: Some(ANSWER),
            user_agent: concat!("pilothouse/", env!("CARGO_PKG_VERSION")),
            ..ClientConfig::default()
        };
        let client = Client::try_from(config).map_err(|error| RegistryError::Client(error.to_string()))?;
        Ok(Self { client, credentials })
    }

    /// The digest of the manifest that the image's tag stands for at the moment. A name with a digest is not asked for.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn resolve(&self, image: &Image) -> Result<String, RegistryError> {
        if let Some(digest) = image.digest() {
            return Ok(digest.to_owned());
        }
        let auth = self.credentials.auth();
        within(ANSWER, self.client.fetch_manifest_digest(image.reference(), &auth)).await
    }

    /// The component under that name, if it has at most `limit` bytes.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn pull(&self, image: &Image, limit: u64) -> Result<Pulled, RegistryError> {
        let (manifest, manifest_digest) = self.manifest(image).await?;
        let layer = layout::component_layer(&manifest)?;
        // The registry says how much it is, and may say it wrongly: what comes is counted, too.
        if u64::try_from(layer.size).map_or(true, |size| size > limit) {
            return Err(RegistryError::TooLarge(limit));
        }
        let bytes = self.blob(image, layer, limit, TRANSFER).await?;
        Ok(Pulled { bytes, manifest_digest })
    }

    /// The signatures of the artifact with this manifest: Sigstore bundles that refer to it, and what older versions of cosign write
    /// under a tag of their own. None is verified. What cannot be read is left out: anybody may add something there.
    ///
    /// # Errors
    /// [`RegistryError`]: the registry does not say what there is.
    pub async fn signatures(&self, image: &Image, manifest_digest: &str) -> Result<Vec<Evidence>, RegistryError> {
        let signed = image.with_digest(manifest_digest);
        self.authorize(&signed).await?;
        let index = within(ANSWER, self.client.pull_referrers(signed.reference(), None)).await?;
        let is_bundle = |kind: &Option<String>| kind.as_deref().is_some_and(|kind| kind.starts_with(layout::BUNDLE));
        let mut found = Vec::new();
        for entry in index.manifests.iter().filter(|entry| is_bundle(&entry.artifact_type)).take(MAX_BUNDLES) {
            match self.bundle(&image.with_digest(&entry.digest)).await {
                Ok(bundle) => found.push(Evidence::bundle(bundle)),
                Err(error) if error.is_about_connection() => return Err(error),
                Err(_) => {}
            }
        }
        match self.manifest(&image.with_tag(&layout::cosign_tag(manifest_digest))).await {
            Ok((manifest, _)) => found.extend(self.of_cosign_tag(&signed, &manifest).await?),
            Err(RegistryError::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
        Ok(found)
    }

    /// Puts a component into the registry and returns the digest of its manifest. `interfaces` are those that it imports and exports.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn push(&self, image: &Image, component: Component) -> Result<String, RegistryError> {
        let (config, layer) = component.parts();
        let layers = [layer];
        let auth = self.credentials.auth();
        within(TRANSFER, self.client.push(image.reference(), &layers, config, &auth, None)).await?;
        self.resolve(image).await
    }

    async fn of_cosign_tag(&self, image: &Image, manifest: &OciImageManifest) -> Result<Vec<Evidence>, RegistryError> {
        let mut found = Vec::new();
        for layer in manifest.layers.iter().take(MAX_BUNDLES) {
            let Some(signature) = layout::CosignSignature::of(layer) else { continue };
            match self.blob(image, layer, MAX_BUNDLE_BYTES, ANSWER).await {
                Ok(payload) => found.extend(Evidence::cosign(&signature, payload)),
                Err(error) if error.is_about_connection() => return Err(error),
                Err(_) => {}
            }
        }
        Ok(found)
    }

    /// The only layer of an artifact that is a bundle.
    async fn bundle(&self, image: &Image) -> Result<Vec<u8>, RegistryError> {
        let (manifest, _) = self.manifest(image).await?;
        let [layer] = &manifest.layers[..] else {
            return Err(RegistryError::Damaged("a bundle has one layer".to_owned()));
        };
        self.blob(image, layer, MAX_BUNDLE_BYTES, ANSWER).await
    }

    async fn manifest(&self, image: &Image) -> Result<(OciImageManifest, String), RegistryError> {
        let auth = self.credentials.auth();
        let (manifest, digest) = within(ANSWER, self.client.pull_manifest(image.reference(), &auth)).await?;
        match manifest {
            OciManifest::Image(manifest) => Ok((manifest, digest)),
            OciManifest::ImageIndex(_) => Err(RegistryError::NotComponent("it is an index of images".to_owned())),
        }
    }

    async fn blob(
        &self,
        image: &Image,
        layer: &oci_client::manifest::OciDescriptor,
        limit: u64,
        time: Duration,
    ) -> Result<Vec<u8>, RegistryError> {
        self.authorize(image).await?;
        let mut out = Bounded { bytes: Vec::new(), limit, is_over: false };
        let pulled = within(time, self.client.pull_blob(image.reference(), layer, &mut out)).await;
        if out.is_over {
            return Err(RegistryError::TooLarge(limit));
        }
        pulled.map(|()| out.bytes)
    }

    async fn authorize(&self, image: &Image) -> Result<(), RegistryError> {
        let auth = self.credentials.auth();
        within(ANSWER, self.client.auth(image.reference(), &auth, RegistryOperation::Pull)).await.map(drop)
    }
}

async fn within<T>(
    time: Duration,
    request: impl Future<Output = Result<T, oci_client::errors::OciDistributionError>>,
) -> Result<T, RegistryError> {
    match tokio::time::timeout(time, request).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(RegistryError::TimedOut(time)),
    }
}

/// TLS needs to be told whose cryptography to use, once in a process. The host's main function has done so; a library user may not.
fn install_crypto_provider() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error says that another thread was faster.
        rustls::crypto::ring::default_provider().install_default().ok();
    }
}

/// Takes bytes up to a limit.
struct Bounded {
    bytes: Vec<u8>,
    limit: u64,
    is_over: bool,
}

impl AsyncWrite for Bounded {
    fn poll_write(mut self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<std::io::Result<usize>> {
        if (self.bytes.len() + bytes.len()) as u64 > self.limit {
            self.is_over = true;
            return Poll::Ready(Err(std::io::Error::other("too large")));
        }
        self.bytes.extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
