//! Reads a component from a registry, with the credentials of a pull secret.

use pilothouse_artifact::{Credentials, CredentialsError, Image, Registry, RegistryError, RegistrySettings};

use super::{
    component::{Fetched, MAX_BYTES, Origin},
    error::ContentError,
    host_namespace::HostNamespace,
    turns::{SMALL, Turn, Work},
};
use crate::api::OciSource;

/// The key of a pull secret's credentials, as the kubelet reads them.
const DOCKER_CONFIG: &str = ".dockerconfigjson";
/// The key of certificate authorities in a ConfigMap, as in `kube-root-ca.crt`.
const CA: &str = "ca.crt";

/// The component of a source, not judged yet.
pub(super) async fn fetch(
    namespace: &HostNamespace,
    turn: &Turn,
    source: &OciSource,
    with_signatures: bool,
) -> Result<Fetched, ContentError> {
    let (image, registry) = open(namespace, source).await?;
    let error = of_registry(source);
    let pulled = match registry.pull(&image, SMALL).await {
        // As the manifest says, or as comes: most registries send nothing before.
        Err(RegistryError::TooLarge(_)) => {
            turn.take(Work::Slow).await;
            registry.pull(&image, MAX_BYTES).await
        }
        pulled => pulled,
    };
    let pulled = pulled.map_err(&error)?;
    let evidence = match with_signatures {
        true => registry.signatures(&image, &pulled.manifest_digest).await.map_err(&error)?,
        false => Vec::new(),
    };
    Ok(Fetched { bytes: pulled.bytes, origin: Origin::Manifest(pulled.manifest_digest), evidence })
}

/// The digest of the manifest that a tag stands for at the moment; none where the image is named by its digest.
pub(super) async fn resolve(namespace: &HostNamespace, source: &OciSource) -> Result<Option<String>, ContentError> {
    let (image, registry) = open(namespace, source).await?;
    match image.digest() {
        Some(_) => Ok(None),
        None => registry.resolve(&image).await.map(Some).map_err(of_registry(source)),
    }
}

/// Whether the image of a source is named by a tag, which may stand for something else tomorrow.
pub(super) fn has_tag(source: &OciSource) -> bool {
    source.image.parse::<Image>().is_ok_and(|image| image.digest().is_none())
}

/// The same source, with the image named by the digest of its manifest.
pub(super) fn by_digest(source: &OciSource, manifest: &str) -> OciSource {
    let image = source.image.parse::<Image>().map(|image| image.with_digest(manifest).to_string());
    OciSource { image: image.unwrap_or_else(|_| source.image.clone()), ..source.clone() }
}

async fn open(namespace: &HostNamespace, source: &OciSource) -> Result<(Image, Registry), ContentError> {
    let image: Image = source.image.parse()?;
    let credentials = match &source.pull_secret_name {
        Some(name) => credentials(namespace, name, &image).await?,
        None => Credentials::Anonymous,
    };
    let certificate_authorities = match &source.ca_config_map_name {
        Some(name) => Some(namespace.text(name, CA).await?),
        None => None,
    };
    let settings = RegistrySettings { plain_http: source.plain_http, certificate_authorities };
    let registry = Registry::new(&settings, credentials).map_err(of_registry(source))?;
    Ok((image, registry))
}

async fn credentials(namespace: &HostNamespace, name: &str, image: &Image) -> Result<Credentials, ContentError> {
    let config = namespace.secret(name, DOCKER_CONFIG).await?;
    let error = |why: CredentialsError| ContentError::Credentials { name: name.to_owned(), why: why.to_string() };
    Credentials::of_docker_config(&config, image).map_err(error)
}

fn of_registry(source: &OciSource) -> impl Fn(RegistryError) -> ContentError {
    let image = source.image.clone();
    move |why| ContentError::Registry { image: image.clone(), why }
}
