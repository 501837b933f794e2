//! A client whose requests are made in the name of a service account. The layers of the client that it wraps see them, too.

use http::{HeaderName, HeaderValue, Request};
use kube::{Client, client::Body};
use tower::service_fn;

use super::ServiceAccount;

/// The header of impersonation. The API server adds the groups of a service account by itself, so there is no header for them.
const IMPERSONATE_USER: HeaderName = HeaderName::from_static("impersonate-user");

/// A client that acts as a service account.
pub fn acting_as(client: &Client, account: &ServiceAccount) -> Client {
    let (host, user) = (client.clone(), account.user());
    let service = service_fn(move |mut request: Request<Body>| {
        let (host, user) = (host.clone(), HeaderValue::try_from(&user));
        async move {
            // A name that fits in no header is that of no account. Without the header it would be the host that acts.
            request.headers_mut().insert(IMPERSONATE_USER, user.map_err(|error| kube::Error::Service(error.into()))?);
            host.send(request).await
        }
    });
    Client::new(service, &*account.namespace)
}
