//! From the contract's request to the contract's response: what the exported function does, and a host that links a plugin
//! natively. It keeps nothing between calls.

use crate::{Request, Response, imports, raw};
use serde::de::DeserializeOwned;

/// Calls `reconcile` with the typed request and returns the contract's response. For an object that does not fit `O` that is
/// the verdict `invalid`.
pub fn run<O, A>(request: raw::Request, reconcile: impl FnOnce(&Request<O>) -> A) -> raw::Response
where
    O: DeserializeOwned,
    A: Into<Response>,
{
    imports::report_panics();
    let response = match Request::read(request) {
        Ok(request) => {
            let response = reconcile(&request).into();
            imports::dispose(request);
            response
        }
        Err(error) => Response::invalid(format!("the object does not fit this plugin: {error}")),
    };
    response.into()
}
