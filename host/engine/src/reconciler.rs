//! The small trait through which a plugin is seen, so that a native function can stand in for one.

use futures::future::BoxFuture;

use crate::{Call, CallContext, Manifest, Verb, contract::Request};

/// Something that reconciles objects of one kind: a WebAssembly plugin, or a native function with a manifest.
pub trait Reconciler: Send + Sync {
    /// What it declares.
    fn manifest(&self) -> &Manifest;

    /// Names this exact version; two versions with the same digest behave the same.
    fn digest(&self) -> &str;

    /// Calls it once. Never fails: whatever goes wrong is an [`crate::Outcome`].
    fn call(&self, verb: Verb, request: Request, context: CallContext) -> BoxFuture<'_, Call>;
}
