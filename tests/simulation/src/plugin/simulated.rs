//! The simulated plugin as the host sees it: a [`Reconciler`] that runs natively or as WebAssembly. Tells the properties what it
//! answered; decides nothing.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use pilothouse_engine::{
    Call, CallContext, Manifest, Outcome, Reconciler, Verb,
    contract::{Request, Response},
};
use serde_json::Value;

use super::{component::Component, manifest::manifest, native, scope::Scope, version::Version};

/// Gets every answer.
pub trait Listener: Send + Sync {
    /// The plugin answered for this object, of which it was shown these children.
    fn answered(&self, object: &Value, children: &[Value], response: &Response);
}

/// How the plugin runs.
#[derive(Clone, Default)]
pub enum Code {
    /// As a function.
    #[default]
    Native,
    /// As WebAssembly.
    Component(Component),
}

/// A version of the plugin, loaded by one host.
pub struct SimulatedPlugin {
    version: Version,
    manifest: Manifest,
    code: Code,
    /// How long it takes to answer once it has looked everything up.
    computes: Duration,
    listener: Arc<dyn Listener>,
}

impl SimulatedPlugin {
    /// Loads a version for the objects of a scope.
    pub fn new(version: Version, scope: Scope, code: Code, listener: Arc<dyn Listener>) -> Self {
        Self { version, manifest: manifest(version, scope), code, computes: Duration::ZERO, listener }
    }

    /// The same, but it takes this long to answer.
    #[must_use]
    pub fn computing(self, computes: Duration) -> Self {
        Self { computes, ..self }
    }

    fn answer(&self, verb: Verb, request: Request, context: CallContext) -> Call {
        let object: Value = serde_json::from_str(&request.object).unwrap_or_default();
        let children: Vec<Value> =
            request.children.iter().map(|child| serde_json::from_str(&child.object).unwrap_or_default()).collect();
        let call = match &self.code {
            Code::Native => native::call(self.version, verb, (&object, &children), &context),
            Code::Component(component) => component.call(self.version, verb, request, context),
        };
        if let Outcome::Response(response) = &call.outcome {
            self.listener.answered(&object, &children, response);
        }
        call
    }
}

impl Reconciler for SimulatedPlugin {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn digest(&self) -> &str {
        self.version.as_str()
    }

    fn call(&self, verb: Verb, request: Request, context: CallContext) -> BoxFuture<'_, Call> {
        // Other tasks have a turn before and after, as they have while WebAssembly computes.
        async move {
            tokio::task::yield_now().await;
            let call = self.answer(verb, request, context);
            if self.computes.is_zero() {
                tokio::task::yield_now().await;
            } else {
                tokio::time::sleep(self.computes).await;
            }
            call
        }
        .boxed()
    }
}
