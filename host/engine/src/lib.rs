//! Runs reconcile plugins: reads, checks, compiles, caches, instantiates, limits and calls WebAssembly components that
//! speak the contract in `wit/`. Knows no Kubernetes client and makes no request of any kind: what a plugin looks up is
//! answered through the [`Lookups`] that the caller hands in.
//!
//! The way of a plugin: bytes → [`Manifest::read`] (nothing runs) → [`Engine::load`] (compile or take from the cache,
//! link once) → [`Plugin::call`] (a fresh instance for every call, dropped afterwards).

mod cache;
mod call;
mod compile;
pub mod contract;
mod digest;
mod engine;
mod epoch;
mod fingerprint;
mod limits;
mod precompiled;
mod reconciler;
mod slow;
mod state;
mod wasi;

pub use call::{Call, CallContext, Outcome, Usage, Verb};
pub use compile::{CompileError, Compiler, compile_file};
pub use digest::digest;
pub use engine::{Engine, EngineConfig, EngineError, LoadError, LoadStats, Plugin};
pub use fingerprint::Fingerprint;
pub use limits::Limits;
pub use pilothouse_wit::{CONTRACT_VERSION, ChildReads, Manifest, ManifestError, Measurement, MeasurementKind};
pub use reconciler::Reconciler;
pub use state::{AnsweredLookup, DeniedLookup, Lookups, NoLookups, Query, Recorded};
