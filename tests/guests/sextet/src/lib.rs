//! Test guest: makes six children of four kinds, as the object's fields say, and deletes them itself when the object goes.
//! It decides nothing: what is wrong with the children is the host's doing.

mod children;
mod fields;

pub use children::{config_maps, secrets, service, service_account};
pub use fields::{Sextet, SextetSpec, SextetStatus};
use pilothouse_sdk::{Error, Request, Response};
use serde_json::Value;

#[cfg(feature = "plugin")]
pilothouse_sdk::plugin! {
    name: "sextet",
    reconciles: "test.pilothouse.dev/v1" "Sextet",
    children: ["v1" "ConfigMap", "v1" "Secret", "v1" "Service", "v1" "ServiceAccount"],
    reconcile: reconcile,
    finalize: finalize,
}

/// Asks for all six.
///
/// # Errors
/// A live child cannot be read.
pub fn reconcile(request: &Request<Sextet>) -> Result<Response, Error> {
    let sextet = &request.object;
    let children = config_maps(sextet).into_iter().chain(secrets(sextet));
    respond(request, children.chain([service(sextet), service_account(sextet)]))
}

/// Asks for those of the children that the object does not leave out, and tells what is there.
///
/// # Errors
/// A live child cannot be read.
pub fn respond(request: &Request<Sextet>, children: impl Iterator<Item = Value>) -> Result<Response, Error> {
    let wanted = children.filter(|child| !children::is_left_out(&request.object, child));
    let response = wanted.fold(Response::done().no_children(), Response::child);
    Ok(response.status(SextetStatus::of(request)?))
}

/// Lets the object go once its children are gone.
pub fn finalize(_: &Request<Sextet>) -> Response {
    Response::done().no_children()
}
