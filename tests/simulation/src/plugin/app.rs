//! The reference plugin `app-service`, run natively beside the simulated one: a second plugin on the same hosts, and one that people
//! use. Tells the properties what it answered; decides nothing.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use pilothouse_engine::{Call, CallContext, Manifest, Outcome, Reconciler, Recorded, Usage, Verb, contract::Request};
use pilothouse_sdk::raw;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::simulated::Listener;

/// The name of the plugin.
pub const PLUGIN: &str = "app-service";

/// The group and version of its objects.
pub const API_VERSION: &str = "apps.example.com/v1";

/// The kind of its objects.
pub const KIND: &str = "AppService";

/// How the API server calls its objects.
pub const RESOURCE: &str = "appservices.apps.example.com";

/// The name of its object: a history has one at most.
pub const OBJECT: &str = "web";

/// What somebody asks for in an `AppService`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct App {
    /// How many instances. Its CRD allows no less than two.
    pub replicas: u8,
    /// A number that its image depends on.
    pub image: u8,
}

impl App {
    /// The spec.
    pub fn spec(self) -> Value {
        json!({"replicas": self.replicas, "image": format!("example.com/app:{}", self.image)})
    }
}

/// The CRD of the objects.
pub fn crd() -> Value {
    app_service::crd::crd()
}

/// What the plugin answers for an object with these children.
pub fn answer(object: &Value, children: &[&Value]) -> raw::Response {
    let current =
        || raw::Readiness { status: raw::ReadinessStatus::Current, reason: String::new(), message: String::new() };
    // Writing a value into memory cannot fail, and is quicker than formatting it.
    let text = |value: &Value| serde_json::to_string(value).unwrap_or_default();
    let live = |child: &&Value| raw::LiveChild { object: text(child), readiness: current() };
    let children = children.iter().map(live).collect();
    let request = raw::Request { object: text(object), children, refused: Vec::new(), config: "null".to_owned() };
    app_service::reconcile_raw(request)
}

/// The plugin, loaded by one host.
pub struct AppPlugin {
    manifest: Manifest,
    listener: Arc<dyn Listener>,
}

impl AppPlugin {
    /// Loads it.
    ///
    /// # Errors
    /// The manifest is not one.
    pub fn new(listener: Arc<dyn Listener>) -> serde_json::Result<Self> {
        Ok(Self { manifest: serde_json::from_str(app_service::MANIFEST)?, listener })
    }
}

impl Reconciler for AppPlugin {
    fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn digest(&self) -> &str {
        PLUGIN
    }

    fn call(&self, _: Verb, request: Request, _: CallContext) -> BoxFuture<'_, Call> {
        // Other tasks have a turn before and after, as they have while WebAssembly computes.
        async move {
            tokio::task::yield_now().await;
            let object: Value = serde_json::from_str(&request.object).unwrap_or_default();
            let shown = request.children.iter().map(|child| serde_json::from_str(&child.object).unwrap_or_default());
            let shown: Vec<Value> = shown.collect();
            let response = app_service::reconcile_raw(pilothouse_native_plugin::request(request));
            let response = pilothouse_native_plugin::response(response);
            self.listener.answered(&object, &shown, &response);
            tokio::task::yield_now().await;
            Call { outcome: Outcome::Response(response), usage: Usage::default(), recorded: Recorded::default() }
        }
        .boxed()
    }
}
