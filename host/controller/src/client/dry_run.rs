//! A client whose writes have no effect: the API server is asked to judge them and to forget them. The layers of the client that it wraps
//! see them, too.

use http::{Request, Uri, uri::PathAndQuery};
use kube::{Client, client::Body};
use tower::service_fn;

use super::request::is_write;

/// A client that makes a dry run of every write.
pub fn dry_running(client: &Client) -> Client {
    let (host, namespace) = (client.clone(), client.default_namespace().to_owned());
    let service = service_fn(move |mut request: Request<Body>| {
        let host = host.clone();
        async move {
            if is_write(&request) {
                // Without the parameter it would be a write like any other.
                *request.uri_mut() = dry_run(request.uri()).map_err(|error| kube::Error::Service(error.into()))?;
            }
            host.send(request).await
        }
    });
    Client::new(service, namespace)
}

fn dry_run(uri: &Uri) -> Result<Uri, http::Error> {
    let (path, query) = (uri.path(), uri.query().unwrap_or_default());
    let is_asked_for = query.split('&').any(|parameter| parameter == "dryRun=All");
    let query = match (query, is_asked_for) {
        (query, true) => query.to_owned(),
        ("", false) => "dryRun=All".to_owned(),
        (query, false) => format!("{query}&dryRun=All"),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(format!("{path}?{query}"))?);
    Ok(Uri::from_parts(parts)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_asked_for_as_a_dry_run_once() -> Result<(), http::Error> {
        for (uri, expected) in [
            ("/api/v1/pods", "/api/v1/pods?dryRun=All"),
            ("/api/v1/pods?force=true", "/api/v1/pods?force=true&dryRun=All"),
            ("/api/v1/pods?dryRun=All&force=true", "/api/v1/pods?dryRun=All&force=true"),
            ("https://host:6443/api?", "https://host:6443/api?dryRun=All"),
        ] {
            assert_eq!(dry_run(&Uri::try_from(uri)?)?, expected);
        }
        Ok(())
    }
}
