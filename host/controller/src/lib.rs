//! The Kubernetes half of the host: watches custom resources, passes each to its plugin, applies the children that the plugin
//! returns and reports on the object. Sees plugins only through [`pilothouse_engine::Reconciler`].
//!
//! Start reading in [`pipeline`], which holds the stages of one reconcile. Around it, [`cache`] holds the observed objects,
//! [`queue`] decides what is reconciled next, [`plugin`] knows the active plugins, [`source`] loads plugins, and [`host`] runs
//! everything.
//!
//! Time, randomness and the API server are passed in, so that a test can replace them: [`host::HostConfig`] has the clock and the
//! random numbers, waiting uses tokio's clock, and the client can be any [`kube::Client`].

mod access;
pub mod api;
pub mod cache;
pub mod client;
pub mod clock;
pub mod errors;
mod events;
mod field_owners;
pub mod host;
pub mod identity;
pub mod kinds;
pub mod label_set;
pub mod labels;
pub mod leader;
pub mod lines;
pub mod lookups;
pub mod metrics;
pub mod object;
pub mod object_text;
pub mod observable;
mod packed_text;
pub mod pipeline;
pub mod plugin;
pub mod projection;
pub mod queue;
mod raw_json;
pub mod readiness;
pub mod schema;
mod selector;
pub mod served_namespaces;
pub mod server;
mod server_time;
pub mod source;
mod withdrawal;
