//! Everything that a Rust author needs to write a Pilothouse plugin: typed requests and responses over the contract in
//! `wit/0.2`, lookups, the clock, the log, the manifest and test helpers. It never talks to a cluster: the host does.
//!
//! A plugin is one function and one macro:
//!
//! ```
//! use k8s_openapi::api::core::v1::ConfigMap;
//! use pilothouse_sdk::{Condition, Error, Object, Request, Response, json};
//! use serde::Deserialize;
//!
//! #[derive(Deserialize)]
//! struct GreetingSpec {
//!     name: String,
//! }
//!
//! pilothouse_sdk::plugin! {
//!     name: "greeting",
//!     reconciles: "example.com/v1" "Greeting",
//!     children: ["v1" "ConfigMap"],
//!     reconcile: reconcile,
//! }
//!
//! fn reconcile(request: &Request<Object<GreetingSpec>>) -> Result<Response, Error> {
//!     let name = request.object.name();
//!     let exists = request.child::<ConfigMap>(name)?.is_some();
//!     Ok(Response::done()
//!         .child(json!({
//!             "apiVersion": "v1",
//!             "kind": "ConfigMap",
//!             "metadata": { "name": name },
//!             "data": { "greeting": format!("Hello, {}!", request.object.spec.name) },
//!         }))
//!         .condition(Condition::when("Ready", exists, "Greeted", "")))
//! }
//! # fn main() {}
//! ```
//!
//! The crate builds for `wasm32-unknown-unknown` and natively. Natively, lookups, clock and log are fakes of the current
//! thread that [`testing`] fills; everything else is the same code.

pub mod bindings;
pub mod clock;
mod condition;
#[cfg(all(feature = "crd", not(target_family = "wasm")))]
pub mod crd;
mod error;
mod event;
#[cfg(any(test, all(feature = "heap", target_family = "wasm")))]
#[allow(unsafe_code, reason = "a global allocator deals in addresses")]
mod heap;
mod imports;
pub mod json;
mod kind;
pub mod log;
pub mod lookup;
#[doc(hidden)]
pub mod manifest;
mod measurement;
mod metadata;
mod object;
mod object_ref;
mod options;
mod parse;
mod path;
mod plugin;
pub mod raw;
mod request;
mod response;
mod run;
#[cfg(not(target_family = "wasm"))]
pub mod testing;

pub use error::Error;
pub use k8s_openapi;
pub use kind::Kind;
pub use metadata::Metadata;
pub use object::Object;
pub use options::Options;
pub use raw::{
    Condition, ConditionStatus, Event, EventType, Handling, ImmutablePolicy, Measurement, Readiness, ReadinessStatus,
    RefusedChild, RemovalPolicy, Verdict,
};
pub use request::Request;
pub use response::Response;
pub use run::{InstanceFor, report_panics, run, run_in, run_raw};
