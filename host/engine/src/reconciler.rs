//! The trait through which the controller sees a plugin, so that a native function can take its place.

use futures::future::BoxFuture;

use crate::{Call, CallContext, Manifest, Verb, contract::Request};

/// Something that reconciles objects of one kind: a WebAssembly plugin, or a native function with a manifest.
pub trait Reconciler: Send + Sync {
    /// The manifest.
    fn manifest(&self) -> &Manifest;

    /// Identifies this exact version. Versions with the same digest behave the same.
    fn digest(&self) -> &str;

    /// Calls it once. Never fails: a failure is an [`crate::Outcome`].
    fn call(&self, verb: Verb, request: Request, context: CallContext) -> BoxFuture<'_, Call>;
}
