//! Authentication with a token from a file, such as a pod's service account token, which the kubelet replaces from time to time.
//! The file is read again every minute, and at once when the API server refuses the token. The refused request is then sent once
//! more with the new token. Tokens are never logged.

use std::{
    path::{Path, PathBuf},
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use futures::FutureExt;
use http::{HeaderValue, Request, Response, StatusCode, header::AUTHORIZATION};
use kube::client::Body;
use tokio::time::Instant;
use tower::{Layer, Service, ServiceExt};

/// How long a token is used before its file is read again, as in client-go.
const MAX_AGE: Duration = Duration::from_secs(60);

/// Why there is no usable token.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    /// The file cannot be read.
    #[error("failed to read the token file '{}': {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file contains no token.
    #[error("the token file '{}' holds no token", path.display())]
    NoToken {
        /// The file.
        path: PathBuf,
    },
}

/// The layer that adds the token of a file to each request. Clones share the token.
#[derive(Clone, Debug)]
pub struct TokenFile {
    path: Arc<Path>,
    token: Arc<Mutex<ReadToken>>,
}

/// A token and when it was read.
#[derive(Debug)]
struct ReadToken {
    header: HeaderValue,
    read_at: Instant,
}

impl ReadToken {
    fn now(header: HeaderValue) -> Self {
        Self { header, read_at: Instant::now() }
    }
}

impl TokenFile {
    /// Reads the token for the first time.
    ///
    /// # Errors
    /// [`TokenError`] if the file contains no token.
    pub fn open(path: &Path) -> Result<Self, TokenError> {
        let first = read(path)?;
        Ok(Self { path: path.into(), token: Arc::new(Mutex::new(ReadToken::now(first))) })
    }

    /// The token to use now. If the file cannot be read, the last token stays in use.
    fn token(&self) -> HeaderValue {
        let mut known = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        if known.read_at.elapsed() >= MAX_AGE {
            // The time counts even if the file cannot be read. Otherwise each request would try to read it again.
            *known = ReadToken::now(read(&self.path).unwrap_or_else(|_| known.header.clone()));
        }
        known.header.clone()
    }

    /// The new token after one was refused; none if the file has no other.
    fn token_after(&self, refused: &HeaderValue) -> Option<HeaderValue> {
        let found = read(&self.path).ok().filter(|found| found != refused)?;
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = ReadToken::now(found.clone());
        Some(found)
    }
}

fn read(path: &Path) -> Result<HeaderValue, TokenError> {
    let text = std::fs::read_to_string(path).map_err(|source| TokenError::Read { path: path.to_owned(), source })?;
    let no_token = || TokenError::NoToken { path: path.to_owned() };
    let token = Some(text.trim()).filter(|token| !token.is_empty()).ok_or_else(no_token)?;
    let mut header = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| no_token())?;
    // Hides the token in debug output and keeps it out of the compression table of HTTP/2.
    header.set_sensitive(true);
    Ok(header)
}

impl<S> Layer<S> for TokenFile {
    type Service = Authenticated<S>;

    fn layer(&self, inner: S) -> Authenticated<S> {
        Authenticated { inner, file: self.clone() }
    }
}

/// A service whose requests carry the token.
#[derive(Clone, Debug)]
pub struct Authenticated<S> {
    inner: S,
    file: TokenFile,
}

impl<S, B> Service<Request<Body>> for Authenticated<S>
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Send,
    S::Future: Send,
    B: Send + 'static,
{
    type Response = Response<B>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<B>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        let token = self.file.token();
        // Copied in advance, because the first attempt consumes the request.
        let again = copy(&request);
        request.headers_mut().insert(AUTHORIZATION, token.clone());
        let (first, file, mut inner) = (self.inner.call(request), self.file.clone(), self.inner.clone());
        async move {
            let answer = first.await?;
            if answer.status() != StatusCode::UNAUTHORIZED {
                return Ok(answer);
            }
            // A write can be sent again, too: the API server authenticates a request before it does anything else with it.
            let (Some(mut again), Some(token)) = (again, file.token_after(&token)) else { return Ok(answer) };
            tracing::info!("the token was refused, but its file holds another one by now");
            again.headers_mut().insert(AUTHORIZATION, token);
            // tower: a clone is not ready just because the original is.
            inner.ready().await?.call(again).await
        }
        .boxed()
    }
}

/// A copy of the request; none if its body is a stream.
fn copy(request: &Request<Body>) -> Option<Request<Body>> {
    let mut copy = Request::new(request.body().try_clone()?);
    request.method().clone_into(copy.method_mut());
    request.uri().clone_into(copy.uri_mut());
    request.headers().clone_into(copy.headers_mut());
    // The fence of a plugin is among them.
    request.extensions().clone_into(copy.extensions_mut());
    *copy.version_mut() = request.version();
    Some(copy)
}

#[cfg(test)]
mod tests {
    use tower::{BoxError, service_fn};

    use super::*;

    type Anything = Box<dyn std::error::Error>;

    /// Accepts only the token `new`, and answers with the method, URI, token and body of the request.
    async fn server(request: Request<Body>) -> Result<Response<String>, BoxError> {
        let token = request.headers().get(AUTHORIZATION).and_then(|token| token.to_str().ok()).unwrap_or_default();
        let status = if token == "Bearer new" { StatusCode::OK } else { StatusCode::UNAUTHORIZED };
        let said = format!("{} {} {}", request.method(), request.uri(), token);
        let body = String::from_utf8(request.into_body().collect_bytes().await?.to_vec())?;
        Ok(Response::builder().status(status).body(format!("{said} {body}"))?)
    }

    async fn ask(file: &TokenFile) -> Result<(u16, String), Anything> {
        let request = Request::builder().method("PATCH").uri("/path?query").body(Body::from(b"body".to_vec()))?;
        let answer = file.layer(service_fn(server)).oneshot(request).await.map_err(|error| error.to_string())?;
        Ok((answer.status().as_u16(), answer.into_body()))
    }

    #[tokio::test]
    async fn a_refused_request_is_sent_again_with_the_token_that_came_meanwhile() -> Result<(), Anything> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("token");
        std::fs::write(&path, "old\n")?;
        let file = TokenFile::open(&path)?;
        assert_eq!(ask(&file).await?, (401, "PATCH /path?query Bearer old body".to_owned()), "there is no other");
        std::fs::write(&path, "new\n")?;
        let answer = (200, "PATCH /path?query Bearer new body".to_owned());
        assert_eq!(ask(&file).await?, answer);
        std::fs::remove_file(&path)?;
        assert_eq!(ask(&file).await?, answer, "it is remembered");
        Ok(())
    }

    #[test]
    fn a_file_without_a_token_is_told() -> Result<(), Anything> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("token");
        assert!(matches!(TokenFile::open(&path), Err(TokenError::Read { .. })));
        for text in ["", " \n", "two\nlines"] {
            std::fs::write(&path, text)?;
            let error = TokenFile::open(&path).err().map(|error| error.to_string()).unwrap_or_default();
            assert!(error.contains("holds no token") && error.contains("token'"), "{text:?}: {error}");
        }
        Ok(())
    }
}
