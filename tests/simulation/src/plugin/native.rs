//! The simulated plugin as the host sees it: a native [`Reconciler`]. Tells the properties what it answered; decides nothing.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use pilothouse_engine::{
    AnsweredLookup, Call, CallContext, Manifest, Outcome, Query, Reconciler, Recorded, Scope, Usage, Verb,
    contract::Request,
    contract::{KindRef, Response},
    lookups::fingerprint_of,
};
use serde_json::Value;

use super::{
    decide::{Inputs, decide, finalize, spec_of},
    version::Version,
};

/// Gets every answer.
pub trait Listener: Send + Sync {
    /// The plugin answered for this object, of which it was shown these children.
    fn answered(&self, object: &Value, children: &[Value], response: &Response);
}

/// A version of the plugin, loaded by one host.
pub struct NativePlugin {
    version: Version,
    manifest: Manifest,
    listener: Arc<dyn Listener>,
}

impl NativePlugin {
    /// Loads a version.
    pub fn new(version: Version, listener: Arc<dyn Listener>) -> Self {
        Self { version, manifest: version.manifest(), listener }
    }

    fn answer(&self, verb: Verb, request: &Request, context: &CallContext) -> Call {
        let object: Value = serde_json::from_str(&request.object).unwrap_or_default();
        let children: Vec<Value> =
            request.children.iter().map(|child| serde_json::from_str(&child.object).unwrap_or_default()).collect();
        let mut recorded = Recorded::default();
        let followed = spec_of(&object).follows.and_then(|name| look_up(&name, context, &mut recorded));
        let response = match verb {
            Verb::Reconcile => decide(Inputs {
                version: self.version,
                object: &object,
                children: &children.iter().collect::<Vec<_>>(),
                followed: followed.as_deref(),
            }),
            Verb::Finalize => finalize(),
        };
        self.listener.answered(&object, &children, &response);
        Call {
            outcome: Outcome::Response(response),
            usage: Usage { duration: Duration::ZERO, memory_peak: 0 },
            recorded,
        }
    }
}

/// The value of a ConfigMap; none if it does not exist.
fn look_up(name: &str, context: &CallContext, recorded: &mut Recorded) -> Option<String> {
    let kind = KindRef::new("v1", "ConfigMap");
    let query = Query::by_name(kind, Scope::OwnNamespace, name);
    let found = context.lookups.answer(&query);
    recorded.lookups.push(AnsweredLookup { query, answer: fingerprint_of(&found) });
    let found: Value = serde_json::from_str(found.ok()?.objects.first()?).ok()?;
    Some(found.pointer("/data/value").and_then(Value::as_str).unwrap_or_default().to_owned())
}

impl Reconciler for NativePlugin {
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
            let call = self.answer(verb, &request, &context);
            tokio::task::yield_now().await;
            call
        }
        .boxed()
    }
}
