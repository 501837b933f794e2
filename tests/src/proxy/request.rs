//! Parses the target of a request from its request line.

use std::fmt;

use axum::http::{Method, Request, header::ACCEPT};

/// The target of a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// The method.
    pub method: Method,
    /// The resource in the plural, with its subresource: `configmaps`, `sextets/status`, or `openapi` for
    /// the documents of the schemas. Empty for discovery.
    pub resource: String,
    /// The object's name, empty for a list or a watch.
    pub name: String,
    /// The label selector of a list or a watch, empty for everything.
    pub selector: String,
    /// The resource version that a watch begins at.
    pub since: Option<u64>,
    /// Whether nothing but metadata is asked for.
    pub is_for_metadata: bool,
    watch: bool,
}

impl Target {
    /// Parses a request line.
    pub fn of<B>(request: &Request<B>) -> Self {
        let query = request.uri().query().unwrap_or_default();
        let parameter = |name: &str| query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='));
        let segments: Vec<_> = request.uri().path().split('/').filter(|segment| !segment.is_empty()).collect();
        let (resource, name) = match below_version(&segments) {
            [resource] => ((*resource).to_owned(), ""),
            [resource, name] => ((*resource).to_owned(), *name),
            [resource, name, subresource @ ..] => (format!("{resource}/{}", subresource.join("/")), *name),
            [] => Default::default(),
        };
        let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok()).unwrap_or_default();
        Self {
            is_for_metadata: accept.contains("as=PartialObjectMetadata"),
            method: request.method().clone(),
            resource,
            name: name.to_owned(),
            selector: parameter("labelSelector").unwrap_or_default().replace("%2F", "/"),
            since: parameter("resourceVersion").and_then(|version| version.parse().ok()),
            watch: parameter("watch").is_some_and(|watch| watch == "true" || watch == "1"),
        }
    }

    /// Whether it is a watch.
    pub fn is_watch(&self) -> bool {
        self.watch
    }

    /// Whether it is a write that tests count. Events and Leases are written at any time, and an access review only
    /// asks a question.
    pub fn is_counted(&self) -> bool {
        let others = ["events", "leases", "selfsubjectaccessreviews", ""];
        self.method != Method::GET && !others.contains(&self.resource.as_str())
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.method, self.resource, self.name)
    }
}

/// The part of a path that begins with the resource; empty for discovery. The documents of the schemas are one resource.
fn below_version<'a>(segments: &'a [&'a str]) -> &'a [&'a str] {
    let rest = match segments {
        ["openapi", ..] => return segments.get(..1).unwrap_or_default(),
        ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
        _ => &[],
    };
    match rest {
        ["namespaces", _, namespaced @ ..] if !namespaced.is_empty() => namespaced,
        rest => rest,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_what_a_request_is_about() -> anyhow::Result<()> {
        for (method, uri, resource, name, watch, counted) in [
            ("GET", "/apis/apps/v1", "", "", false, false),
            ("GET", "/api/v1/namespaces/shop/configmaps?labelSelector=a&watch=true", "configmaps", "", true, false),
            ("GET", "/apis/apps/v1/deployments?resourceVersion=7&watch=1", "deployments", "", true, false),
            ("PATCH", "/api/v1/namespaces/shop/configmaps/web?force=true", "configmaps", "web", false, true),
            ("PATCH", "/apis/e.com/v1/namespaces/shop/webs/a/status", "webs/status", "a", false, true),
            ("DELETE", "/api/v1/namespaces/shop", "namespaces", "shop", false, true),
            ("POST", "/api/v1/namespaces/shop/events", "events", "", false, false),
            (
                "POST",
                "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews?",
                "selfsubjectaccessreviews",
                "",
                false,
                false,
            ),
        ] {
            let target = Target::of(&Request::builder().method(method).uri(uri).body(())?);
            let seen = (target.resource.as_str(), target.name.as_str(), target.is_watch(), target.is_counted());
            assert_eq!(seen, (resource, name, watch, counted), "{method} {uri}");
            assert_eq!(target.since, uri.contains("resourceVersion").then_some(7), "{uri}");
        }
        Ok(())
    }
}
