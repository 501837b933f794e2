//! A plugin that does nothing: what is left is the host's own work.

use anyhow::Result;
use futures::future::BoxFuture;
use pilothouse_engine::{
    Call, CallContext, Manifest, Outcome, Reconciler, Recorded, Usage, Verb,
    contract::{Request, Response, Verdict},
};
use serde_json::Value;

/// The plugin, for objects of the kind `AppService`.
pub struct Nothing {
    manifest: Manifest,
}

impl Nothing {
    /// The plugin.
    ///
    /// # Errors
    /// The manifest that it is made from is not one.
    pub fn new() -> Result<Self> {
        let mut manifest: Value = serde_json::from_str(app_service::MANIFEST)?;
        for field in ["children", "childReadiness", "lookups"] {
            if let Some(manifest) = manifest.as_object_mut() {
                manifest.remove(field);
            }
        }
        Ok(Self { manifest: serde_json::from_value(manifest)? })
    }
}

impl Reconciler for Nothing {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn digest(&self) -> &str {
        "nothing"
    }

    fn call(&self, _: Verb, _: Request, _: CallContext) -> BoxFuture<'_, Call> {
        let response = Response { children: Some(Vec::new()), ..Response::verdict(Verdict::Done) };
        let call =
            Call { outcome: Outcome::Response(response), usage: Usage::default(), recorded: Recorded::default() };
        Box::pin(std::future::ready(call))
    }
}
