//! Plugins as native functions behind the same trait as a WebAssembly plugin: what is left of the difference is the cost of WebAssembly.

use std::time::Instant;

use futures::future::BoxFuture;
use pilothouse_engine::{
    Call, CallContext, Manifest, Outcome, Reconciler, Recorded, Usage, Verb,
    contract::{Request, Response, Verdict},
};

/// A native plugin.
pub struct Native {
    manifest: Manifest,
    reconcile: fn(Request) -> Response,
}

impl Native {
    /// The AppService plugin with its own manifest.
    ///
    /// # Errors
    /// The manifest is not one.
    pub fn app_service() -> serde_json::Result<Self> {
        Ok(Self { manifest: serde_json::from_str(app_service::MANIFEST)?, reconcile })
    }

    /// A plugin for objects of the kind `AppService` that wants nothing: what is left is the host's own work.
    ///
    /// # Errors
    /// The manifest of the AppService plugin is not one.
    pub fn nothing() -> serde_json::Result<Self> {
        let manifest: Manifest = serde_json::from_str(app_service::MANIFEST)?;
        let manifest = Manifest { children: Vec::new(), child_readiness: Vec::new(), lookups: Vec::new(), ..manifest };
        Ok(Self { manifest, reconcile: want_nothing })
    }
}

impl Reconciler for Native {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn digest(&self) -> &str {
        "native"
    }

    fn call(&self, _: Verb, request: Request, _: CallContext) -> BoxFuture<'_, Call> {
        let started = Instant::now();
        let outcome = Outcome::Response((self.reconcile)(request));
        let usage = Usage { duration: started.elapsed(), ..Usage::default() };
        Box::pin(std::future::ready(Call { outcome, usage, recorded: Recorded::default() }))
    }
}

/// Calls the function of the AppService plugin.
pub fn reconcile(request: Request) -> Response {
    pilothouse_native_plugin::response(app_service::reconcile_raw(pilothouse_native_plugin::request(request)))
}

fn want_nothing(_: Request) -> Response {
    Response { children: Some(Vec::new()), ..Response::verdict(Verdict::Done) }
}
