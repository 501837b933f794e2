//! A client whose writes have no effect: the API server is asked to judge them and to forget them. The layers of the client that it wraps
//! see them, too.

use http::{Method, Request, Uri, uri::PathAndQuery};
use kube::{Client, client::Body};
use serde_json::{Map, Value, json};
use tower::{BoxError, service_fn};

use super::request::is_write;

/// The parameter that makes a dry run of a request.
const PARAMETER: &str = "dryRun=All";

/// A client that makes a dry run of every write.
pub fn dry_running(client: &Client) -> Client {
    let (host, namespace) = (client.clone(), client.default_namespace().to_owned());
    let service = service_fn(move |request: Request<Body>| {
        let host = host.clone();
        async move {
            let request =
                if is_write(&request) { dry_run(request).await.map_err(kube::Error::Service)? } else { request };
            host.send(request).await
        }
    });
    Client::new(service, namespace)
}

/// The same request as a dry run.
async fn dry_run(mut request: Request<Body>) -> Result<Request<Body>, BoxError> {
    // Without the parameter it would be a write like any other.
    *request.uri_mut() = with_parameter(request.uri())?;
    if request.method() != Method::DELETE {
        return Ok(request);
    }
    // Of a deletion with options in its body, the API server does not read the parameters.
    let (parts, body) = request.into_parts();
    let options = body.collect_bytes().await?;
    let body = if options.is_empty() { options.into() } else { with_option(&options)?.into() };
    Ok(Request::from_parts(parts, body))
}

fn with_parameter(uri: &Uri) -> Result<Uri, http::Error> {
    let (path, query) = (uri.path(), uri.query().unwrap_or_default());
    let is_asked_for = query.split('&').any(|parameter| parameter == PARAMETER);
    let query = match (query, is_asked_for) {
        (query, true) => query.to_owned(),
        ("", false) => PARAMETER.to_owned(),
        (query, false) => format!("{query}&{PARAMETER}"),
    };
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(PathAndQuery::try_from(format!("{path}?{query}"))?);
    Ok(Uri::from_parts(parts)?)
}

fn with_option(options: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    let mut options: Map<String, Value> = serde_json::from_slice(options)?;
    options.insert("dryRun".to_owned(), json!(["All"]));
    serde_json::to_vec(&options)
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
            assert_eq!(with_parameter(&Uri::try_from(uri)?)?, expected);
        }
        Ok(())
    }

    #[tokio::test]
    async fn a_deletion_with_options_says_it_in_them_too() -> Result<(), BoxError> {
        let options = json!({"kind": "DeleteOptions", "preconditions": {"uid": "1"}});
        for (body, expected) in [
            (
                options.to_string(),
                json!({"kind": "DeleteOptions", "preconditions": {"uid": "1"}, "dryRun": ["All"]}).to_string(),
            ),
            (String::new(), String::new()),
        ] {
            let request = Request::delete("/api/v1/namespaces/a/pods/b").body(Body::from(body.into_bytes()))?;
            let (parts, body) = dry_run(request).await?.into_parts();
            assert_eq!(parts.uri.query(), Some(PARAMETER));
            let sent = body.collect_bytes().await?;
            let read = |text: &[u8]| serde_json::from_slice::<Value>(text).ok();
            assert_eq!(read(&sent), read(expected.as_bytes()));
        }
        Ok(())
    }
}
