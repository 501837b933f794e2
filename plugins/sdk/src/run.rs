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
    run_in(InstanceFor::OneCall, request, reconcile)
}

/// How many calls an instance answers.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstanceFor {
    /// One: its memory goes with it.
    OneCall,
    /// Several: what a call leaves is there in the next one.
    SeveralCalls,
}

/// As [`run`], in an instance for so many calls.
#[doc(hidden)]
pub fn run_in<O, A>(
    instance: InstanceFor,
    request: raw::Request,
    reconcile: impl FnOnce(&Request<O>) -> A,
) -> raw::Response
where
    O: DeserializeOwned,
    A: Into<Response>,
{
    run_raw(request, |request| match Request::read(request) {
        Ok(request) => {
            let response = reconcile(&request).into();
            match instance {
                InstanceFor::OneCall => imports::dispose(request),
                InstanceFor::SeveralCalls => drop(request),
            }
            response
        }
        Err(error) => Response::invalid(format!("the object does not fit this plugin: {error}")),
    })
}

/// The same for a plugin that reads the request itself, for it knows the kinds of its objects from its configuration only.
pub fn run_raw<A: Into<Response>>(request: raw::Request, reconcile: impl FnOnce(raw::Request) -> A) -> raw::Response {
    imports::report_panics();
    reconcile(request).into().into()
}

/// Has the message of a panic sent to the host, which shows it.
#[doc(hidden)]
pub fn report_panics() {
    imports::report_panics();
}
