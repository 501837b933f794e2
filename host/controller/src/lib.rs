//! The Kubernetes half of the host: watches custom resources, hands each to its plugin, applies what the plugin returns,
//! reports on the object. Sees plugins only through [`pilothouse_engine::Reconciler`].
//!
//! Start reading in [`pipeline`], which is the way of one reconcile, stage by stage. Around it: [`cache`] holds what is
//! there, [`queue`] says what is next, [`host`] runs it, [`source`] brings plugins.

pub mod cache;
pub mod client;
mod events;
pub mod host;
pub mod kinds;
pub mod labels;
pub mod leader;
pub mod lookups;
mod members;
pub mod metrics;
pub mod pipeline;
pub mod plugin;
pub mod queue;
mod record;
pub mod rights;
pub mod selector;
mod self_check;
pub mod server;
pub mod source;
mod starting;
