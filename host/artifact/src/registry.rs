//! What is asked of registries: what a tag stands for, pull, push, and the signatures beside an artifact. Each ends in time, and what
//! comes has a limit.

use std::time::Duration;

use oci_client::{
    Client,
    client::{Certificate, CertificateEncoding, ClientConfig, ClientProtocol},
    manifest::{ImageIndexEntry, OciImageIndex, OciImageManifest, OciManifest},
};
use serde::de::DeserializeOwned;

use crate::{
    Credentials, Image, RegistryError,
    layout::{self, Component},
    reader::{ANSWER, Reader, USER_AGENT, within},
    signatures::Evidence,
};

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
    reader: Reader,
    settings: RegistrySettings,
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
        let reader = Reader::new(settings, credentials.clone())?;
        Ok(Self { reader, settings: settings.clone(), credentials })
    }

    /// The digest of the manifest that the image's tag stands for at the moment. A name with a digest is not asked for.
    ///
    /// # Errors
    /// [`RegistryError`].
    pub async fn resolve(&self, image: &Image) -> Result<String, RegistryError> {
        if let Some(digest) = image.digest() {
            return Ok(digest.to_owned());
        }
        Ok(self.reader.manifest_digest(image).await?.as_str().to_owned())
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
        let bytes = self.reader.blob(image, &layer.digest, limit, TRANSFER).await?;
        Ok(Pulled { bytes, manifest_digest })
    }

    /// The signatures of the artifact with this manifest: Sigstore bundles that refer to it, and what older versions of cosign write
    /// under a tag of their own. None is verified. What cannot be read is left out: anybody may add something there.
    ///
    /// # Errors
    /// [`RegistryError`]: the registry does not say what there is.
    pub async fn signatures(&self, image: &Image, manifest_digest: &str) -> Result<Vec<Evidence>, RegistryError> {
        let signed = image.with_digest(manifest_digest);
        let referrers = self.referrers(&signed).await?;
        let is_bundle = |kind: &Option<String>| kind.as_deref().is_some_and(|kind| kind.starts_with(layout::BUNDLE));
        let mut found = Vec::new();
        for entry in referrers.iter().filter(|entry| is_bundle(&entry.artifact_type)).take(MAX_BUNDLES) {
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
        let client = pushing_client(&self.settings).map_err(|error| RegistryError::Client(error.to_string()))?;
        let auth = self.credentials.auth();
        let push = client.push(image.reference(), &layers, config, &auth, None);
        within(TRANSFER, async { Ok(push.await?) }).await?;
        self.resolve(image).await
    }

    async fn of_cosign_tag(&self, image: &Image, manifest: &OciImageManifest) -> Result<Vec<Evidence>, RegistryError> {
        let mut found = Vec::new();
        for layer in manifest.layers.iter().take(MAX_BUNDLES) {
            let Some(signature) = layout::CosignSignature::of(layer) else { continue };
            match self.reader.blob(image, &layer.digest, MAX_BUNDLE_BYTES, ANSWER).await {
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
        self.reader.blob(image, &layer.digest, MAX_BUNDLE_BYTES, ANSWER).await
    }

    /// What refers to the artifact. Older registries keep the list under a tag: "Referrers Tag Schema" of the distribution
    /// specification. None of either is an empty list.
    async fn referrers(&self, image: &Image) -> Result<Vec<ImageIndexEntry>, RegistryError> {
        let list = match self.reader.referrers(image).await {
            Err(RegistryError::NotFound(_)) => {
                let tag = image.digest().unwrap_or_default().replace(':', "-");
                self.reader.manifest(&image.with_tag(&tag)).await.map(|(list, _)| list)
            }
            answer => answer,
        };
        match list {
            Ok(list) => parsed::<OciImageIndex>(&list).map(|list| list.manifests),
            Err(RegistryError::NotFound(_)) => Ok(Vec::new()),
            Err(error) => Err(error),
        }
    }

    async fn manifest(&self, image: &Image) -> Result<(OciImageManifest, String), RegistryError> {
        let (manifest, digest) = self.reader.manifest(image).await?;
        match parsed(&manifest)? {
            OciManifest::Image(manifest) => Ok((manifest, digest.as_str().to_owned())),
            OciManifest::ImageIndex(_) => Err(RegistryError::NotComponent("it is an index of images".to_owned())),
        }
    }
}

/// The library's client, which reads answers whole: for pushing alone.
fn pushing_client(settings: &RegistrySettings) -> Result<Client, oci_client::errors::OciDistributionError> {
    let authority = |pem: &String| Certificate { encoding: CertificateEncoding::Pem, data: pem.clone().into_bytes() };
    Client::try_from(ClientConfig {
        protocol: if settings.plain_http { ClientProtocol::Http } else { ClientProtocol::Https },
        extra_root_certificates: settings.certificate_authorities.iter().map(authority).collect(),
        // An index names images of platforms. A component has none.
        platform_resolver: None,
        read_timeout: Some(ANSWER),
        connect_timeout: Some(ANSWER),
        user_agent: USER_AGENT,
        ..ClientConfig::default()
    })
}

/// The registry's word for what a manifest or a list is.
fn parsed<T: DeserializeOwned>(json: &[u8]) -> Result<T, RegistryError> {
    serde_json::from_slice(json)
        .map_err(|error| RegistryError::Unavailable(format!("it answers what no registry answers: {error}")))
}

/// TLS needs to be told whose cryptography to use, once in a process. The host's main function has done so; a library user may not.
fn install_crypto_provider() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // An error says that another thread was faster.
        rustls::crypto::ring::default_provider().install_default().ok();
    }
}
