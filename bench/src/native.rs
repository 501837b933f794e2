//! The AppService plugin as a native function behind the same trait as a WebAssembly plugin: what is left of the
//! difference is the cost of WebAssembly.

use std::time::Instant;

use futures::future::BoxFuture;
use pilothouse_engine::{
    Call, CallContext, Manifest, Outcome, Reconciler, Recorded, Usage, Verb,
    contract::{Request, Response},
};

/// The native AppService plugin.
pub struct NativeAppService {
    manifest: Manifest,
}

impl NativeAppService {
    /// The plugin with its own manifest.
    ///
    /// # Errors
    /// The manifest is not one.
    pub fn new() -> serde_json::Result<Self> {
        Ok(Self { manifest: serde_json::from_str(app_service::MANIFEST)? })
    }
}

impl Reconciler for NativeAppService {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn digest(&self) -> &str {
        "native"
    }

    fn call(&self, _: Verb, request: Request, _: CallContext) -> BoxFuture<'_, Call> {
        let started = Instant::now();
        let outcome = Outcome::Response(reconcile(request));
        let usage = Usage { duration: started.elapsed(), ..Usage::default() };
        Box::pin(std::future::ready(Call { outcome, usage, recorded: Recorded::default() }))
    }
}

/// Calls the plugin's function.
pub fn reconcile(request: Request) -> Response {
    pilothouse_native_plugin::response(app_service::reconcile_raw(pilothouse_native_plugin::request(request)))
}
