//! What a request asks for: its path, its query and its body, read but not judged.

use http::{Method, Request as HttpRequest};

use super::error::ApiError;

/// The target and the options of a request.
#[derive(Clone, Debug, Default)]
pub struct Request<'r> {
    /// The group; empty for the core kinds.
    pub group: &'r str,
    /// The version.
    pub version: &'r str,
    /// The namespace; empty for none.
    pub namespace: &'r str,
    /// The plural of the kind; empty for a document of the server itself.
    pub plural: &'r str,
    /// The name; empty for a collection.
    pub name: &'r str,
    /// The subresource; empty for the object itself.
    pub subresource: &'r str,
    /// The query.
    pub query: Query,
}

/// The options in the query, decoded.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    fn parse(query: &str) -> Self {
        let pairs = query.split('&').filter(|pair| !pair.is_empty());
        let decoded = pairs.map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decode(name), decode(value))
        });
        Self(decoded.collect())
    }

    /// An option; empty if it is not given.
    pub fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str()).unwrap_or_default()
    }

    /// Whether an option is given.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    /// Adds a selection by name: a watch of one object.
    pub fn select_name(&mut self, name: &str) {
        self.0.retain(|(known, _)| known != "fieldSelector");
        self.0.push(("fieldSelector".to_owned(), format!("metadata.name={name}")));
    }

    /// A boolean option.
    pub fn flag(&self, name: &str) -> bool {
        self.has(name) && !matches!(self.get(name), "0" | "false" | "")
    }

    /// A number.
    ///
    /// # Errors
    /// 400 if it is none.
    pub fn number(&self, name: &str) -> Result<Option<u64>, ApiError> {
        match self.get(name) {
            "" => Ok(None),
            text => {
                text.parse().map(Some).map_err(|_| ApiError::bad_request(format!("{name}: Invalid value: {text:?}")))
            }
        }
    }

    /// Whether nothing is to be written.
    pub fn is_dry_run(&self) -> bool {
        self.get("dryRun") == "All"
    }
}

impl<'r> Request<'r> {
    /// Reads the path and the query; none if this is not a path of kinds.
    pub fn parse<B>(request: &'r HttpRequest<B>) -> Option<Self> {
        let uri = request.uri();
        let query = Query::parse(uri.query().unwrap_or_default());
        let mut parts = uri.path().split('/').filter(|part| !part.is_empty());
        let (group, version) = match parts.next()? {
            "api" => ("", parts.next().unwrap_or_default()),
            "apis" => (parts.next().unwrap_or_default(), parts.next().unwrap_or_default()),
            _ => return None,
        };
        let rest: Vec<_> = parts.collect();
        let of = |index: usize| rest.get(index).copied().unwrap_or_default();
        let target = Self { group, version, query, ..Self::default() };
        let is_of_namespace = group.is_empty() && matches!(of(2), "status" | "finalize");
        if of(0) == "namespaces" && rest.len() > 2 && !is_of_namespace {
            return Some(Self { namespace: of(1), plural: of(2), name: of(3), subresource: of(4), ..target });
        }
        Some(Self { plural: of(0), name: of(1), subresource: of(2), ..target })
    }

    /// The verb, as rights name it.
    pub fn verb(&self, method: &Method) -> &'static str {
        match (method, self.name.is_empty()) {
            (&Method::GET, true) if self.query.flag("watch") => "watch",
            (&Method::GET, true) => "list",
            (&Method::GET, false) => "get",
            (&Method::POST, _) => "create",
            (&Method::PUT, _) => "update",
            (&Method::PATCH, _) => "patch",
            (&Method::DELETE, true) => "deletecollection",
            (&Method::DELETE, false) => "delete",
            _ => "",
        }
    }
}

fn decode(text: &str) -> String {
    if !text.bytes().any(|byte| byte == b'%' || byte == b'+') {
        return text.to_owned();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        let digits = tail.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match (first, digits.and_then(|digits| u8::from_str_radix(digits, 16).ok())) {
            (b'%', Some(byte)) => {
                bytes.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            (b'+', _) => bytes.push(b' '),
            (other, _) => bytes.push(*other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_says_what_is_meant() {
        for (path, expected) in [
            ("/api/v1/namespaces", ["", "v1", "", "namespaces", "", ""]),
            ("/api/v1/namespaces/a", ["", "v1", "", "namespaces", "a", ""]),
            ("/api/v1/namespaces/a/status", ["", "v1", "", "namespaces", "a", "status"]),
            ("/api/v1/namespaces/a/pods", ["", "v1", "a", "pods", "", ""]),
            ("/apis/apps/v1/namespaces/a/deployments/b/status", ["apps", "v1", "a", "deployments", "b", "status"]),
            ("/apis/apps/v1/deployments", ["apps", "v1", "", "deployments", "", ""]),
            ("/apis/apps/v1", ["apps", "v1", "", "", "", ""]),
        ] {
            let request = HttpRequest::get(format!("{path}?labelSelector=a%3Db,c&x")).body(()).unwrap_or_default();
            let found = Request::parse(&request).unwrap_or_default();
            let parts = [found.group, found.version, found.namespace, found.plural, found.name, found.subresource];
            assert_eq!(parts, expected, "{path}");
            assert_eq!(found.query.get("labelSelector"), "a=b,c");
        }
    }
}
