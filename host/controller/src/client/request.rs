//! Classifies requests by their method and URL. Sends none.

use http::{Method, Request};

/// Whether a request changes something. A SelfSubjectAccessReview is sent with POST but changes nothing.
pub(crate) fn is_write<B>(request: &Request<B>) -> bool {
    let is_review = request.uri().path().ends_with("/selfsubjectaccessreviews");
    !is_review && ![Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method())
}

/// Whether a request is a watch.
pub(crate) fn is_watch<B>(request: &Request<B>) -> bool {
    request.uri().query().is_some_and(|query| query.split('&').any(|parameter| parameter == "watch=true"))
}
