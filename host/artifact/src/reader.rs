//! Requests that read from a registry: manifests, lists of what refers to them, blobs. Every answer has a limit, in bytes and in time.
//! Writes nothing, and knows nothing of what it reads.
//!
//! `oci_client` can do the same, but reads an answer into memory whole, however much comes.

use std::{
    sync::{Mutex, PoisonError},
    time::Duration,
};

use oci_client::{
    errors::OciDistributionError,
    manifest::{
        IMAGE_MANIFEST_LIST_MEDIA_TYPE, IMAGE_MANIFEST_MEDIA_TYPE, OCI_IMAGE_INDEX_MEDIA_TYPE, OCI_IMAGE_MEDIA_TYPE,
    },
};
use reqwest::{
    Certificate, Client, Method, Response, StatusCode,
    header::{ACCEPT, AUTHORIZATION, HeaderMap, HeaderValue},
};

use crate::{
    Credentials, Image, RegistryError, RegistrySettings,
    authorization::{self, Challenge},
    digest::Digest,
};

/// How long the answer to a small request may take.
pub const ANSWER: Duration = Duration::from_secs(15);
/// What registries are told of who asks.
pub const USER_AGENT: &str = concat!("pilothouse/", env!("CARGO_PKG_VERSION"));
/// The most bytes of a manifest or of a list of them: what registries have to take at least.
/// <https://github.com/opencontainers/distribution-spec/blob/main/spec.md#pushing-manifests>
const MAX_MANIFEST_BYTES: u64 = 4 << 20;
/// The most bytes of a token, or of a registry's words on why it does not answer.
const MAX_WORDS_BYTES: u64 = 64 << 10;

/// Reads from one registry with one set of credentials.
pub struct Reader {
    client: Client,
    scheme: &'static str,
    credentials: Credentials,
    /// What the registry took last.
    authorization: Mutex<Option<HeaderValue>>,
}

impl Reader {
    /// # Errors
    /// The certificate authorities are not PEM.
    pub fn new(settings: &RegistrySettings, credentials: Credentials) -> Result<Self, RegistryError> {
        let client = client(settings).map_err(|error| RegistryError::Client(error.to_string()))?;
        let scheme = if settings.plain_http { "http" } else { "https" };
        let authorization = match &credentials {
            Credentials::Token(token) => authorization::bearer(token),
            Credentials::Anonymous | Credentials::Basic { .. } => None,
        };
        Ok(Self { client, scheme, credentials, authorization: Mutex::new(authorization) })
    }

    /// The digest of the image's manifest, without the manifest where the registry can say it.
    pub async fn manifest_digest(&self, image: &Image) -> Result<Digest, RegistryError> {
        let url = self.manifest_url(image)?;
        let answer = within(ANSWER, self.request(Method::HEAD, &url, image)).await?;
        match digest_header(answer.headers())? {
            Some(digest) => Ok(digest),
            None => Ok(self.manifest(image).await?.1),
        }
    }

    /// The image's manifest and its digest.
    pub async fn manifest(&self, image: &Image) -> Result<(Vec<u8>, Digest), RegistryError> {
        let url = self.manifest_url(image)?;
        let (headers, bytes) = within(ANSWER, self.document(&url, image)).await?;
        let named = image.digest().map(parse).transpose()?;
        let told = digest_header(&headers)?;
        if let Some(digest) = [&named, &told].into_iter().flatten().find(|digest| !digest.is_of(&bytes)) {
            return Err(RegistryError::Damaged(format!("the manifest is not the one of digest {}", digest.as_str())));
        }
        let digest = named.or(told).unwrap_or_else(|| Digest::sha256(&bytes));
        Ok((bytes, digest))
    }

    /// The list of what refers to the image, which is named by its digest.
    pub async fn referrers(&self, image: &Image) -> Result<Vec<u8>, RegistryError> {
        let url = self.url(image, "referrers", image.digest().unwrap_or_default())?;
        within(ANSWER, self.document(&url, image)).await.map(|(_, bytes)| bytes)
    }

    /// The blob of this digest, which has at most `limit` bytes and comes in `time`.
    pub async fn blob(
        &self,
        image: &Image,
        digest: &str,
        limit: u64,
        time: Duration,
    ) -> Result<Vec<u8>, RegistryError> {
        let digest = parse(digest)?;
        let url = self.url(image, "blobs", digest.as_str())?;
        let read = async { read(self.request(Method::GET, &url, image).await?, limit).await };
        let bytes = within(time, read).await?.ok_or(RegistryError::TooLarge(limit))?;
        match digest.is_of(&bytes) {
            true => Ok(bytes),
            false => Err(RegistryError::Damaged(format!("the blob is not the one of digest {}", digest.as_str()))),
        }
    }

    async fn document(&self, url: &str, image: &Image) -> Result<(HeaderMap, Vec<u8>), RegistryError> {
        let answer = self.request(Method::GET, url, image).await?;
        let headers = answer.headers().clone();
        let too_much = || {
            let most = MAX_MANIFEST_BYTES >> 20;
            RegistryError::Unavailable(format!("it answers with more than {most} MiB, which no manifest has: {url}"))
        };
        Ok((headers, read(answer, MAX_MANIFEST_BYTES).await?.ok_or_else(too_much)?))
    }

    /// The answer 200, after the registry has got what it wants to see.
    async fn request(&self, method: Method, url: &str, image: &Image) -> Result<Response, RegistryError> {
        let known = self.known_authorization();
        let answer = self.send(method.clone(), url, known).await?;
        if answer.status() != StatusCode::UNAUTHORIZED {
            return succeeded(answer).await;
        }
        let Some(authorization) = self.authorize(answer.headers(), image).await? else {
            return succeeded(answer).await;
        };
        *self.authorization.lock().unwrap_or_else(PoisonError::into_inner) = Some(authorization.clone());
        succeeded(self.send(method, url, Some(authorization)).await?).await
    }

    fn known_authorization(&self) -> Option<HeaderValue> {
        self.authorization.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What the registry asks for. None if these credentials do not have it.
    async fn authorize(&self, headers: &HeaderMap, image: &Image) -> Result<Option<HeaderValue>, RegistryError> {
        if matches!(self.credentials, Credentials::Token(_)) {
            return Ok(None);
        }
        match Challenge::of(headers, image.repository())? {
            None => Ok(None),
            Some(Challenge::Basic) => Ok(authorization::basic(&self.credentials)),
            Some(Challenge::Bearer(url)) => {
                let answer = self.send(Method::GET, url.as_str(), authorization::basic(&self.credentials)).await?;
                let too_much = || RegistryError::Unavailable("its server for tokens answers without end".to_owned());
                let token = read(succeeded(answer).await?, MAX_WORDS_BYTES).await?.ok_or_else(too_much)?;
                authorization::token_of(&token).map(Some)
            }
        }
    }

    async fn send(
        &self,
        method: Method,
        url: &str,
        authorization: Option<HeaderValue>,
    ) -> Result<Response, RegistryError> {
        let accepted = [
            OCI_IMAGE_MEDIA_TYPE,
            OCI_IMAGE_INDEX_MEDIA_TYPE,
            IMAGE_MANIFEST_MEDIA_TYPE,
            IMAGE_MANIFEST_LIST_MEDIA_TYPE,
            "*/*",
        ];
        let request = self.client.request(method, url).header(ACCEPT, accepted.join(", "));
        let request = match authorization {
            Some(authorization) => request.header(AUTHORIZATION, authorization),
            None => request,
        };
        request.send().await.map_err(unavailable)
    }

    fn manifest_url(&self, image: &Image) -> Result<String, RegistryError> {
        let name = image.digest().or(image.tag()).unwrap_or("latest");
        self.url(image, "manifests", name)
    }

    /// The names of images and tags have no letter that means something in a path, and digests are checked.
    fn url(&self, image: &Image, what: &str, name: &str) -> Result<String, RegistryError> {
        if name.contains(':') {
            parse(name)?;
        }
        Ok(format!("{}://{}/v2/{}/{what}/{name}", self.scheme, image.registry(), image.repository()))
    }
}

fn client(settings: &RegistrySettings) -> Result<Client, reqwest::Error> {
    let authorities = match &settings.certificate_authorities {
        Some(pem) => Certificate::from_pem_bundle(pem.as_bytes())?,
        None => Vec::new(),
    };
    Client::builder()
        .tls_certs_merge(authorities)
        .read_timeout(ANSWER)
        .connect_timeout(ANSWER)
        .user_agent(USER_AGENT)
        .build()
}

/// All that comes. None if it has more bytes than the limit.
async fn read(mut answer: Response, limit: u64) -> Result<Option<Vec<u8>>, RegistryError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(unavailable)? {
        if (bytes.len() + chunk.len()) as u64 > limit {
            return Ok(None);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(Some(bytes))
}

/// The answer if it is one, else the registry's words on why not.
async fn succeeded(answer: Response) -> Result<Response, RegistryError> {
    let (status, mut url) = (answer.status(), answer.url().clone());
    if status == StatusCode::OK {
        return Ok(answer);
    }
    url.set_query(None);
    let url = url.to_string();
    let words = read(answer, MAX_WORDS_BYTES).await?.unwrap_or_default();
    if let Ok(envelope) = serde_json::from_slice(&words) {
        return Err(OciDistributionError::RegistryError { envelope, url }.into());
    }
    let message = String::from_utf8_lossy(&words).into_owned();
    Err(OciDistributionError::ServerError { code: status.as_u16(), url, message }.into())
}

fn digest_header(headers: &HeaderMap) -> Result<Option<Digest>, RegistryError> {
    let Some(header) = headers.get("docker-content-digest") else { return Ok(None) };
    parse(&String::from_utf8_lossy(header.as_bytes())).map(Some)
}

fn parse(digest: &str) -> Result<Digest, RegistryError> {
    let shown = || digest.chars().take(100).collect::<String>().escape_debug().to_string();
    Digest::parse(digest).ok_or_else(|| RegistryError::Damaged(format!("'{}' is no digest", shown())))
}

/// Without the address's query: where a registry sends its readers elsewhere, that is a password for it.
fn unavailable(mut error: reqwest::Error) -> RegistryError {
    if let Some(url) = error.url_mut() {
        url.set_query(None);
    }
    OciDistributionError::from(error).into()
}

/// Ends a request in time.
pub async fn within<T>(
    time: Duration,
    request: impl Future<Output = Result<T, RegistryError>>,
) -> Result<T, RegistryError> {
    tokio::time::timeout(time, request).await.unwrap_or(Err(RegistryError::TimedOut(time)))
}
