//! What can go wrong with a request or a watch. Values only.

use http::Method;
use serde::{Deserialize, Serialize};

/// Which requests of the hosts a fault is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RequestClass {
    /// Writes of objects, but not of Leases and Events.
    Write,
    /// Creates and updates of children.
    Apply,
    /// Deletes.
    Delete,
    /// Writes of a status.
    Status,
    /// Reads of single objects.
    Get,
    /// Listings.
    List,
    /// Starts of watches.
    Watch,
    /// Reads and writes of the Lease.
    Lease,
    /// Writes of Events.
    Event,
    /// What is asked about kinds and schemas.
    Discovery,
}

/// What happens to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Fault {
    /// It is answered with this status and not carried out.
    Refused(u16),
    /// The connection breaks before it arrives.
    Lost,
    /// It is carried out, but the connection breaks before the answer arrives.
    AnswerLost,
    /// It never arrives, and the connection stays open.
    Silent,
    /// It is carried out, and its answer never arrives while the connection stays open.
    AnswerSilent,
    /// It arrives this many milliseconds later.
    Late(u32),
    /// It is carried out at once, and the answer arrives this many milliseconds later.
    AnswerLate(u32),
    /// The host dies before it arrives, and another one comes up after this many milliseconds.
    CrashBefore(u32),
    /// The host dies when it is carried out, and another one comes up after this many milliseconds.
    CrashAfter(u32),
}

/// What happens to watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum WatchTrouble {
    /// Those that are open end.
    Cut,
    /// Those that are open break in the middle of a line.
    Break,
    /// Those that are open deliver nothing more, but stay open.
    Stall,
    /// Those that are open deliver an error with status 410.
    Expire,
    /// From now on, events come this many milliseconds later than usual: their API server is behind.
    Lag(u32),
    /// The next one that is started delivers this many events again that came before its start.
    Replay(u16),
}

impl RequestClass {
    /// All classes.
    pub const ALL: [Self; 10] = [
        Self::Write,
        Self::Apply,
        Self::Delete,
        Self::Status,
        Self::Get,
        Self::List,
        Self::Watch,
        Self::Lease,
        Self::Event,
        Self::Discovery,
    ];

    /// Whether a request is of this class.
    pub fn has<B>(self, request: &http::Request<B>) -> bool {
        let query = request.uri().query().unwrap_or_default();
        let is_watch = || query.split('&').any(|parameter| parameter == "watch=true");
        let is_read = [Method::GET, Method::HEAD].contains(request.method());
        // Most requests are reads, and to read the path takes longest.
        match self {
            Self::Watch => return is_read && is_watch(),
            Self::Write | Self::Apply | Self::Delete | Self::Status if is_read => return false,
            _ => {}
        }
        let kind = Target::of(request.uri().path());
        let is_write = !is_read && kind != Target::Review;
        let is_object = kind == Target::Object || kind == Target::Status;
        match self {
            Self::Write => is_write && is_object,
            Self::Apply => kind == Target::Object && request.method() == Method::PATCH,
            Self::Delete => is_object && request.method() == Method::DELETE,
            Self::Status => is_write && kind == Target::Status,
            Self::Get => !is_write && is_object,
            Self::List => kind == Target::Collection && !is_write && !is_watch(),
            Self::Watch => is_watch(),
            Self::Lease => kind == Target::Lease,
            Self::Event => kind == Target::Event,
            Self::Discovery => kind == Target::Discovery,
        }
    }
}

/// What a path is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    Discovery,
    Collection,
    Object,
    Status,
    Lease,
    Event,
    Review,
}

impl Target {
    fn of(path: &str) -> Self {
        let mut parts: Vec<_> = path.trim_matches('/').split('/').collect();
        if parts.first() == Some(&"openapi") {
            return Self::Discovery;
        }
        let group = if parts.first() == Some(&"api") { 2 } else { 3 };
        let mut rest = parts.split_off(group.min(parts.len()));
        if rest.first() == Some(&"namespaces") && rest.len() > 2 {
            rest.drain(..2);
        }
        match *rest {
            [] => Self::Discovery,
            ["leases", ..] => Self::Lease,
            ["events", ..] => Self::Event,
            ["selfsubjectaccessreviews"] => Self::Review,
            [_] => Self::Collection,
            [_, _] => Self::Object,
            _ => Self::Status,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn classes(method: &str, uri: &str) -> Vec<RequestClass> {
        let request = http::Request::builder().method(method).uri(uri).body(()).unwrap_or_default();
        RequestClass::ALL.into_iter().filter(|class| class.has(&request)).collect()
    }

    #[test]
    fn a_request_belongs_to_the_classes_of_its_method_and_path() {
        use RequestClass::{Apply, Delete, Discovery, Event, Get, Lease, List, Status, Watch, Write};
        for (method, uri, expected) in [
            ("PATCH", "/api/v1/namespaces/a/configmaps/b?fieldManager=x", vec![Write, Apply]),
            ("DELETE", "/apis/apps/v1/namespaces/a/deployments/b", vec![Write, Delete]),
            ("PATCH", "/apis/e/v1/namespaces/a/webs/b/status", vec![Write, Status]),
            ("GET", "/api/v1/namespaces/a/configmaps/b", vec![Get]),
            ("GET", "/api/v1/configmaps?limit=500", vec![List]),
            ("GET", "/api/v1/namespaces/a/configmaps?watch=true&x=y", vec![Watch]),
            ("PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/b", vec![Lease]),
            ("POST", "/api/v1/namespaces/a/events", vec![Event]),
            ("POST", "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", vec![]),
            ("GET", "/api/v1", vec![Discovery]),
            ("GET", "/apis/apps/v1", vec![Discovery]),
            ("GET", "/openapi/v3/apis/apps/v1", vec![Discovery]),
        ] {
            assert_eq!(classes(method, uri), expected, "{method} {uri}");
        }
    }
}
