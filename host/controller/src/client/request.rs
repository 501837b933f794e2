//! What a request does, read off its method and its address. Sends none.

use http::{Method, Request};

/// Whether a request changes something. A review of the own access is sent like a write, but only asks.
pub(crate) fn is_write<B>(request: &Request<B>) -> bool {
    let only_asks = request.uri().path().ends_with("/selfsubjectaccessreviews");
    !only_asks && ![Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method())
}

/// Whether a request asks for changes as they come.
pub(crate) fn is_watch<B>(request: &Request<B>) -> bool {
    request.uri().query().is_some_and(|query| query.split('&').any(|parameter| parameter == "watch=true"))
}
