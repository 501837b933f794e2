//! The Kubernetes half of the host: watches custom resources, hands each to its plugin, applies what the plugin returns,
//! reports on the object. Sees plugins only through [`pilothouse_engine::Reconciler`].
//!
//! Start reading in [`pipeline`], which is the way of one reconcile, stage by stage. Around it: [`cache`] holds what is
//! there, [`queue`] says what is next, [`plugin`] knows which plugins are at work, [`host`] runs it all, [`source`] brings plugins.
//!
//! Time, chance and the API server come from outside: [`host::HostConfig`] has the clock and the random numbers, waiting follows
//! tokio's clock, and the client is any that speaks HTTP.

mod access;
pub mod cache;
pub mod client;
pub mod clock;
mod errors;
mod events;
pub mod host;
pub mod kinds;
pub mod labels;
pub mod leader;
pub mod lookups;
pub mod metrics;
pub mod object;
pub mod pipeline;
pub mod plugin;
pub mod queue;
mod raw_json;
pub mod schema;
pub mod selector;
pub mod server;
pub mod source;
